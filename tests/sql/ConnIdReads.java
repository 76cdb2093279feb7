// ConnId's framework with the real ScriptedSQL bundle, and scripts of ours.
//
//     java -cp 'lib/*' ConnIdReads.java BUNDLE URL USER PASSWORD SCRIPTS DRIVER
//
// It prints the names of the schema's attributes; then for each line of its input `TOKEN COUNT` the deltas of a sync from that token,
// up to so many: their token, type, uid and name; `end` after the last. The line `latest` prints the latest token.

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.TreeSet;
import org.identityconnectors.common.security.GuardedString;
import org.identityconnectors.framework.api.APIConfiguration;
import org.identityconnectors.framework.api.ConfigurationProperties;
import org.identityconnectors.framework.api.ConnectorFacade;
import org.identityconnectors.framework.api.ConnectorFacadeFactory;
import org.identityconnectors.framework.api.ConnectorInfo;
import org.identityconnectors.framework.api.ConnectorInfoManagerFactory;
import org.identityconnectors.framework.common.objects.Attribute;
import org.identityconnectors.framework.common.objects.AttributeInfo;
import org.identityconnectors.framework.common.objects.ObjectClass;
import org.identityconnectors.framework.common.objects.OperationOptionsBuilder;
import org.identityconnectors.framework.common.objects.SyncToken;

public class ConnIdReads {
    public static void main(String[] words) throws Exception {
        ConnectorInfo bundle = ConnectorInfoManagerFactory.getInstance()
                .getLocalManager(new File(words[0]).toURI().toURL()).getConnectorInfos().get(0);
        APIConfiguration api = bundle.createDefaultAPIConfiguration();
        ConfigurationProperties settings = api.getConfigurationProperties();
        settings.setPropertyValue("jdbcDriver", words[5]);
        settings.setPropertyValue("jdbcUrlTemplate", words[1]);
        settings.setPropertyValue("user", words[2]);
        settings.setPropertyValue("password", new GuardedString(words[3].toCharArray()));
        settings.setPropertyValue("scriptingLanguage", "GROOVY");
        settings.setPropertyValue("syncScriptFileName", words[4] + "/SyncScript.groovy");
        settings.setPropertyValue("schemaScriptFileName", words[4] + "/SchemaScript.groovy");
        ConnectorFacade facade = ConnectorFacadeFactory.getInstance().newInstance(api);
        TreeSet<String> names = new TreeSet<>();
        for (AttributeInfo info : facade.schema().findObjectClassInfo(ObjectClass.ACCOUNT_NAME).getAttributeInfo()) {
            names.add(info.getName());
        }
        System.out.println(String.join(" ", names));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.equals("latest")) {
                System.out.println(facade.getLatestSyncToken(ObjectClass.ACCOUNT).getValue());
                continue;
            }
            String[] asked = line.split(" ");
            SyncToken token = new SyncToken(Long.valueOf(asked[0]));
            int[] left = {Integer.parseInt(asked[1])};
            facade.sync(ObjectClass.ACCOUNT, token, delta -> {
                Attribute name = delta.getObject() == null ? null : delta.getObject().getAttributeByName("name");
                Object value = name == null || name.getValue().isEmpty() ? "-" : name.getValue().get(0);
                System.out.println(delta.getToken().getValue() + " " + delta.getDeltaType() + " " + delta.getUid().getUidValue() + " " + value);
                return --left[0] > 0;
            }, new OperationOptionsBuilder().build());
            System.out.println("end");
            System.out.flush();
        }
    }
}
