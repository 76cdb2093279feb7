// Flink's debezium-json on lines of standard input: each row with its kind, or REFUSED with the reason.
//
//     java -cp 'lib/*' FlinkReads.java schemas|plain < lines

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.formats.common.TimestampFormat;
import org.apache.flink.formats.json.debezium.DebeziumJsonDeserializationSchema;
import org.apache.flink.metrics.MetricGroup;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.util.Collector;
import org.apache.flink.util.SimpleUserCodeClassLoader;
import org.apache.flink.util.UserCodeClassLoader;

public class FlinkReads {
    public static void main(String[] words) throws Exception {
        DataType row = DataTypes.ROW(
                DataTypes.FIELD("id", DataTypes.INT()),
                DataTypes.FIELD("name", DataTypes.STRING()),
                DataTypes.FIELD("born", DataTypes.INT()),
                DataTypes.FIELD("pay", DataTypes.BYTES()),
                DataTypes.FIELD("at", DataTypes.BIGINT()));
        DebeziumJsonDeserializationSchema schema = new DebeziumJsonDeserializationSchema(
                row, List.of(), InternalTypeInfo.of(row.getLogicalType()), words[0].equals("schemas"), false, TimestampFormat.SQL);
        schema.open(new DeserializationSchema.InitializationContext() {
            public MetricGroup getMetricGroup() {
                return new UnregisteredMetricsGroup();
            }

            public UserCodeClassLoader getUserCodeClassLoader() {
                return SimpleUserCodeClassLoader.create(FlinkReads.class.getClassLoader());
            }
        });
        Collector<RowData> printed = new Collector<>() {
            public void collect(RowData read) {
                System.out.println(read.getRowKind().shortString() + " " + cells(read));
            }

            public void close() {}
        };
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try {
                schema.deserialize(line.getBytes(StandardCharsets.UTF_8), printed);
            } catch (Exception fault) {
                Throwable cause = fault;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                System.out.println("REFUSED " + cause.getMessage().lines().findFirst().orElse(""));
            }
        }
    }

    private static String cells(RowData row) {
        return (row.isNullAt(0) ? "null" : row.getInt(0)) + " "
                + (row.isNullAt(1) ? "null" : row.getString(1)) + " "
                + (row.isNullAt(2) ? "null" : row.getInt(2)) + " "
                + (row.isNullAt(3) ? "null" : new java.math.BigInteger(row.getBinary(3))) + " "
                + (row.isNullAt(4) ? "null" : row.getLong(4));
    }
}
