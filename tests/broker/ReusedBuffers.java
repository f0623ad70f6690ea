import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Provokes KAFKA-19012 in a producer of Kafka's own: batches expire while they wait in a request
 * that the socket does not take, and their buffers are used for batches of another topic.
 *
 * Arguments: bootstrap servers, topic that times out, topic that gets its buffers, partitions of
 * each. Each printed line asks the test for something; a line from the test says that it is done.
 */
public class ReusedBuffers {
    private static final int SIZE = 15000;
    private static final int TIMEOUT_MS = 10000;
    private static int sent;
    private static final BufferedReader ANSWERS =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    public static void main(String[] args) throws Exception {
        String first = args[1];
        String second = args[2];
        int partitions = Integer.parseInt(args[3]);
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("enable.idempotence", "true");
        config.put("enable.metrics.push", "false");
        config.put("max.in.flight.requests.per.connection", "1");
        config.put("linger.ms", "0");
        config.put("request.timeout.ms", String.valueOf(TIMEOUT_MS));
        config.put("delivery.timeout.ms", String.valueOf(TIMEOUT_MS));
        config.put("send.buffer.bytes", "4096");
        ByteArraySerializer bytes = new ByteArraySerializer();
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, bytes, bytes)) {
            // A batch with sequence 0 would look like the first one of a topic.
            for (Future<RecordMetadata> one : sendAll(producer, second, partitions)) {
                one.get();
            }
            // The last partition takes what is not part of the fault.
            send(producer, first, partitions).get();
            ask("hold the answers");
            Future<RecordMetadata> waiting = send(producer, first, partitions);
            ask("wait for the request");
            // These wait for the request before. So they expire earlier than their own request.
            List<Future<RecordMetadata>> expiring = sendAll(producer, first, partitions);
            Thread.sleep(TIMEOUT_MS / 2);
            ask("read nothing more and let the answers go");
            waiting.get();
            for (Future<RecordMetadata> one : expiring) {
                try {
                    one.get();
                    throw new IllegalStateException("a batch did not expire");
                } catch (ExecutionException error) {
                    // As it should be.
                }
            }
            for (Future<RecordMetadata> one : sendAll(producer, second, partitions)) {
                one.get();
            }
            ask("read on");
            for (Future<RecordMetadata> one : sendAll(producer, second, partitions)) {
                one.get();
            }
            send(producer, first, partitions).get();
        }
    }

    private static void ask(String what) throws IOException {
        System.out.println(what);
        ANSWERS.readLine();
    }

    private static List<Future<RecordMetadata>> sendAll(
            KafkaProducer<byte[], byte[]> producer, String topic, int partitions) {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            sent.add(send(producer, topic, partition));
        }
        return sent;
    }

    /** Send a record that names its topic; all have the same size, and no two are equal. */
    private static Future<RecordMetadata> send(
            KafkaProducer<byte[], byte[]> producer, String topic, int partition) {
        String text = "for " + topic + " " + sent++;
        byte[] value = String.format("%-" + SIZE + "s", text).getBytes(StandardCharsets.UTF_8);
        return producer.send(new ProducerRecord<>(topic, partition, null, value));
    }
}
