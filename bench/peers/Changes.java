// Debezium's engine on a table: each change that it reads from PostgreSQL's log of writes becomes a line of a file.
//
//     java -cp 'lib/*' Changes.java FILE < properties
//
// The properties are the engine's own, up to a line `end`. After each batch it prints how many changes are in the file and the time in
// nanoseconds; it ends when its input ends.

import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;

public class Changes {
    private static long written;
    private static boolean withKeys; // each line is an object with the key and the value, which is null in a tombstone

    public static void main(String[] words) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder given = new StringBuilder();
        for (String line = input.readLine(); line != null && !line.equals("end"); line = input.readLine()) {
            given.append(line).append('\n');
        }
        Properties properties = new Properties();
        properties.load(new StringReader(given.toString()));
        withKeys = "true".equals(properties.remove("with.keys"));
        try (Writer file = Files.newBufferedWriter(Path.of(words[0]))) {
            DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
                    .using(properties)
                    .using((success, message, error) -> {
                        if (!success) {
                            System.err.println(message + ": " + error);
                            System.exit(1);
                        }
                    })
                    .notifying((List<ChangeEvent<String, String>> batch, DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer)
                            -> write(batch, committer, file))
                    .build();
            Thread reading = new Thread(engine);
            reading.start();
            while (input.readLine() != null) {
            }
            engine.close();
            reading.join();
        }
    }

    private static void write(
            List<ChangeEvent<String, String>> batch,
            DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer,
            Writer file) throws InterruptedException {
        try {
            for (ChangeEvent<String, String> event : batch) {
                file.write(withKeys ? "{\"key\":" + event.key() + ",\"value\":" + event.value() + "}" : event.value());
                file.write('\n');
                written++;
                committer.markProcessed(event);
            }
            file.flush();
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        }
        committer.markBatchFinished();
        System.out.println(written + " " + System.nanoTime());
        System.out.flush();
    }
}
