import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;

/**
 * Reads damaged copies of a bootstrap.checkpoint as a node does at its start.
 *
 * The arguments are the file and an empty directory. Each line of the output is a damage ("flip", a
 * byte and a mask; "cut" and a size), and "read", or the exception that ends the start.
 */
public class ReadBootstrap {
    private static final int[] MASKS = {0x01, 0x10, 0x80, 0xff};
    private final Path target;
    private final Object directory;
    private final Method read;

    private ReadBootstrap(String home) throws Exception {
        target = Path.of(home, "bootstrap.checkpoint");
        Class<?> type = Class.forName("org.apache.kafka.metadata.bootstrap.BootstrapDirectory");
        Constructor<?> constructor = type.getConstructors()[0];
        directory = constructor.getParameterCount() == 1
            ? constructor.newInstance(home)
            : constructor.newInstance(home, Optional.empty());
        read = type.getMethod("read");
    }

    public static void main(String[] words) throws Exception {
        byte[] sound = Files.readAllBytes(new File(words[0]).toPath());
        ReadBootstrap reader = new ReadBootstrap(words[1]);
        for (int at = 0; at < sound.length; at++) {
            for (int mask : MASKS) {
                byte[] damaged = sound.clone();
                damaged[at] ^= (byte) mask;
                reader.print("flip\t" + at + "\t" + mask, damaged);
            }
            reader.print("cut\t" + at + "\t0", Arrays.copyOf(sound, at));
        }
    }

    private void print(String damage, byte[] content) throws Exception {
        Files.write(target, content);
        String outcome = "read";
        try {
            read.invoke(directory);
        } catch (ReflectiveOperationException failure) {
            outcome = String.valueOf(failure.getCause()).replaceAll("\\s+", " ");
        }
        System.out.println(damage + "\t" + outcome);
    }
}
