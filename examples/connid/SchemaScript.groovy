// The schema for ConnId's ScriptedSQL connector: an attribute for each column of the tables.

import org.identityconnectors.framework.common.objects.AttributeInfoBuilder
import org.identityconnectors.framework.common.objects.ObjectClassInfoBuilder

// Edit this: for each object class the table, and the column that identifies an object.
def tables = [__ACCOUNT__: [table: "usr", identity: "login"]]

tables.each { objectClass, source ->
    def statement = connection.prepareStatement("select * from " + source.table + " where 1 = 0")
    def columns = statement.executeQuery().metaData
    def described = new ObjectClassInfoBuilder().setType(objectClass)
    for (int at = 1; at <= columns.columnCount; at++) {
        def attribute = new AttributeInfoBuilder(columns.getColumnName(at), String)
        attribute.required = columns.getColumnName(at).equalsIgnoreCase(source.identity)
        described.addAttributeInfo(attribute.build())
    }
    builder.defineObjectClass(described.build())
    statement.close()
}
