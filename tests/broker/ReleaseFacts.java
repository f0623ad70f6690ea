import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;

/**
 * Prints what the classes of a release parse and offer: each line is a word, a feature and a range
 * or, for "name", a name and a level.
 *
 * "parses" is the range of MetadataVersion, which a record of the metadata log must lie in; "offers"
 * is what a controller supports, which a feature level must lie in.
 */
public class ReleaseFacts {
    public static void main(String[] arguments) throws Exception {
        Class<?> versions = Class.forName("org.apache.kafka.server.common.MetadataVersion");
        Method level = versions.getMethod("featureLevel");
        int first = Integer.MAX_VALUE;
        int last = 0;
        for (Object version : versions.getEnumConstants()) {
            int number = (Short) level.invoke(version);
            if (number > 0) {
                first = Math.min(first, number);
                last = Math.max(last, number);
                System.out.println("name " + version + " " + number);
            }
        }
        System.out.println("parses metadata.version " + first + "-" + last);
        for (Map.Entry<?, ?> one : new TreeMap<>(offered()).entrySet()) {
            System.out.println("offers " + one.getKey() + " " + one.getValue());
        }
    }

    private static Map<?, ?> offered() throws Exception {
        Class<?> features = Class.forName("org.apache.kafka.controller.QuorumFeatures");
        for (Method method : features.getMethods()) {
            if (method.getName().matches("default(Supported)?FeatureMap")) {
                // From 3.7 on the argument adds what is not ready for production.
                Object[] none = {};
                Object[] no = {false};
                return (Map<?, ?>) method.invoke(null, method.getParameterCount() == 0 ? none : no);
            }
        }
        throw new NoSuchMethodException("QuorumFeatures");
    }
}
