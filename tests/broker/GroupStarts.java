import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/**
 * Commits offsets, or prints where consumers go on that begin at them: BROKER commit CASE... or
 * BROKER earliest|latest CASE..., each case as GROUP:TOPIC:PARTITION:OFFSET:EPOCH; -1: no epoch.
 */
public class GroupStarts {
    private static KafkaConsumer<byte[], byte[]> consumer(String broker, String group, String reset) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", broker);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", reset);
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", "1");
        String bytes = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
        settings.put("key.deserializer", bytes);
        settings.put("value.deserializer", bytes);
        return new KafkaConsumer<>(settings);
    }

    private static long start(KafkaConsumer<byte[], byte[]> consumer, TopicPartition place, long offset) {
        long end = System.nanoTime() + 60_000_000_000L;
        while (System.nanoTime() < end) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                return record.offset();
            }
            long position = consumer.position(place, Duration.ofSeconds(10));
            if (position != offset) {
                return position;
            }
        }
        return -1;
    }

    public static void main(String[] words) {
        boolean commits = words[1].equals("commit");
        for (int i = 2; i < words.length; i++) {
            String[] parts = words[i].split(":");
            TopicPartition place = new TopicPartition(parts[1], Integer.parseInt(parts[2]));
            long offset = Long.parseLong(parts[3]);
            int epoch = Integer.parseInt(parts[4]);
            String reset = commits ? "earliest" : words[1];
            try (KafkaConsumer<byte[], byte[]> one = consumer(words[0], parts[0], reset)) {
                one.assign(List.of(place));
                if (commits) {
                    Optional<Integer> known = epoch < 0 ? Optional.empty() : Optional.of(epoch);
                    one.commitSync(Map.of(place, new OffsetAndMetadata(offset, known, "")));
                } else {
                    System.out.println(parts[0] + "\t" + start(one, place, offset));
                }
            }
        }
    }
}
