import java.io.File;
import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.iceberg.Files;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Serves a catalogue of Iceberg over REST by the servlet of its own project, and prints the port: WAREHOUSE. */
public class RestCatalogue {
  /** The files of this machine, without Hadoop. */
  public static class LocalFiles implements FileIO {
    @Override
    public InputFile newInputFile(String path) {
      return Files.localInput(path);
    }

    @Override
    public OutputFile newOutputFile(String path) {
      return Files.localOutput(path.replaceFirst("^file:/*", "/"));
    }

    @Override
    public void deleteFile(String path) {
      new File(path.replaceFirst("^file:/*", "/")).delete();
    }
  }

  public static void main(String[] words) throws Exception {
    JdbcCatalog catalogue = new JdbcCatalog(properties -> new LocalFiles(), null, true);
    catalogue.initialize(
        "rest", Map.of("uri", "jdbc:sqlite::memory:", "clients", "1", "warehouse", words[0]));
    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalogue))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(context);
    server.start();
    System.out.println(((ServerConnector) server.getConnectors()[0]).getLocalPort());
    server.join();
  }
}
