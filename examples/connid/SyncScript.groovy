// Live synchronisation for ConnId's ScriptedSQL connector (midPoint, Apache Syncope), deletes included.
//
// The queue of each table is made by `eventlog track --for connid --identity COLUMN TABLE`; see docs/connid.md.
// A row of the queue gets its number when it is handed out, so a transaction that commits late gets a later one.
// What the framework finished, as its token tells, is deleted; what it did not is handed out again.

import groovy.sql.Sql

// Edit this: for each object class the table, and the column that identifies an object.
def tables = [__ACCOUNT__: [table: "usr", identity: "login"]]
def most = 1000 // rows of one call

def source = tables[objectClass.toString()]
if (source == null) {
    throw new IllegalArgumentException("SyncScript.groovy names no table for the object class " + objectClass)
}
def queue = source.table + "_queue"
def sql = new Sql(connection)

if (action == "GET_LATEST_SYNC_TOKEN") {
    return sql.firstRow("select coalesce((select min(handed) - 1 from " + queue + "),"
        + " (select case when is_called then last_value else 0 end from " + queue + "_waiting)) as token").token as Long
}

def finished = token == null ? 0L : token as Long
sql.execute("delete from " + queue + " where handed <= ?", [finished])
sql.execute("update " + queue + " q set handed = n.number from (select o.place, nextval('" + queue + "_waiting') as number"
    + " from (select place from " + queue + " where handed is null order by place limit " + most + ") o) n"
    + " where q.place = n.place")

def deltas = []
def read = "select handed, action, " + source.identity + " as uid from " + queue
sql.eachRow(read + " where handed > ? order by handed limit " + most, [finished]) { row ->
    def uid = row.uid.toString()
    if (row.action == "Delete") {
        deltas << [operation: "DELETE", uid: uid, token: row.handed as Long, attributes: [:]]
        return
    }
    def present = sql.firstRow("select * from " + source.table + " where " + source.identity + " = ?", [row.uid])
    if (present == null) {
        return // it is gone by now, and its delete is in the queue
    }
    def attributes = [:]
    present.each { name, value -> attributes[name] = value == null ? [] : [value.toString()] }
    deltas << [operation: "CREATE_OR_UPDATE", uid: uid, token: row.handed as Long, attributes: attributes]
}
return deltas
