import java.io.File;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.List;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.loader.MetadataBatchLoader;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.SupportedConfigChecker;
import org.apache.kafka.raft.Batch;
import org.apache.kafka.raft.LeaderAndEpoch;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandler;

/**
 * Applies the records of metadata logs as a broker of Kafka 4.3 does, and prints what it could not
 * apply and what it knew in the end.
 *
 * The arguments are log files. Each line of the output is the file, a word and what belongs to it,
 * between tabs: "fault", an offset and a message; "version" and the metadata.version; "record", a
 * record of the image in base64, or "unwritable" where Kafka cannot write its own image.
 */
public class ReplayMetadata {
    private final String name;
    private MetadataImage image = MetadataImage.EMPTY;
    private long offset;

    private ReplayMetadata(String name) {
        this.name = name;
    }

    public static void main(String[] files) throws Exception {
        for (String file : files) {
            new ReplayMetadata(file).run(new File(file));
        }
    }

    private void run(File file) throws Exception {
        FaultHandler faults = (text, cause) -> {
            print("fault", offset + "\t" + String.valueOf(cause).replaceAll("\\s+", " "));
            return new RuntimeException(text);
        };
        MetadataBatchLoader loader = new MetadataBatchLoader(new LogContext(), Time.SYSTEM, faults,
            (delta, next, manifest) -> image = next, SupportedConfigChecker.TRUE);
        loader.resetToImage(image);
        try (FileRecords records = FileRecords.open(file, false)) {
            for (RecordBatch batch : records.batches()) {
                // A loader says where a record stands only where it is alone in its batch.
                for (Record record : batch) {
                    offset = record.offset();
                    ByteBuffer value = record.value();
                    ApiMessageAndVersion message = MetadataRecordSerde.INSTANCE.read(
                        new ByteBufferAccessor(value), value.remaining());
                    loader.loadBatch(Batch.data(offset, batch.partitionLeaderEpoch(), 0, 1,
                        List.of(message)), LeaderAndEpoch.UNKNOWN);
                    loader.maybeFlushBatches(LeaderAndEpoch.UNKNOWN, true);
                }
            }
        }
        print("version", String.valueOf(
            image.features().metadataVersion().map(MetadataVersion::featureLevel).orElse((short) 0)));
        RecordListWriter writer = new RecordListWriter();
        try {
            // The newest version, so that nothing is left out of what is written.
            image.write(writer, new ImageWriterOptions.Builder(MetadataVersion.latestProduction())
                .setEligibleLeaderReplicasEnabled(true).build());
        } catch (RuntimeException cause) {
            print("unwritable", String.valueOf(cause));
            return;
        }
        for (ApiMessageAndVersion message : writer.records()) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            int size = MetadataRecordSerde.INSTANCE.recordSize(message, cache);
            ByteBuffer buffer = ByteBuffer.allocate(size);
            MetadataRecordSerde.INSTANCE.write(message, cache, new ByteBufferAccessor(buffer));
            print("record", Base64.getEncoder().encodeToString(buffer.array()));
        }
    }

    private void print(String word, String text) {
        System.out.println(name + "\t" + word + "\t" + text);
    }
}
