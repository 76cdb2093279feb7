// Live synchronisation for ConnId's ScriptedSQL connector (midPoint, Apache Syncope), deletes included.
//
// The queue of each table is made by `eventlog track --for connid --identity COLUMN TABLE`; see docs/log/readers.md.
// A row of the queue gets its number when it is handed out, so a transaction that commits late gets a later one.
// What the framework finished, as its token tells, is deleted; what it did not is handed out again.
// The statements are the same for PostgreSQL, MariaDB, MySQL and Oracle.

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
sql.withStatement { it.maxRows = most }
def last = { sql.firstRow("select handed from " + queue + "_last").handed as Long }

if (action == "GET_LATEST_SYNC_TOKEN") {
    def oldest = sql.firstRow("select min(handed) as oldest from " + queue).oldest
    return oldest == null ? last() : (oldest as Long) - 1
}

// Rows are named by their places, which locks no others, and numbers no row that came since they were read.
def among = { rows -> " and place in (" + rows.collect { it.place as Long }.join(", ") + ")" }
def finished = token == null ? 0L : token as Long
def done = sql.rows("select place from " + queue + " where handed <= ?", [finished])
if (done) {
    sql.execute("delete from " + queue + " where handed <= ?" + among(done), [finished])
}
def added = sql.rows("select place from " + queue + " where handed is null order by place")
if (added) {
    def before = last()
    def shift = before + 1 - (added.first().place as Long)
    def highest = shift + (added.last().place as Long)
    if (sql.executeUpdate("update " + queue + "_last set handed = ? where handed = ?", [highest, before]) != 1) {
        throw new IllegalStateException("two readers number rows of " + queue + " at once; let only one read it")
    }
    sql.execute("update " + queue + " set handed = place + ? where handed is null" + among(added), [shift])
}

def deltas = []
def read = "select handed, action, " + source.identity + " as object_uid from " + queue
sql.rows(read + " where handed > ? order by handed", [finished]).each { row ->
    def uid = row.object_uid.toString()
    if (row.action == "Delete") {
        deltas << [operation: "DELETE", uid: uid, token: row.handed as Long, attributes: [:]]
        return
    }
    def present = sql.firstRow("select * from " + source.table + " where " + source.identity + " = ?", [row.object_uid])
    if (present == null) {
        return // it is gone by now, and its delete is in the queue
    }
    def attributes = [:]
    present.each { name, value -> attributes[name] = value == null ? [] : [value.toString()] }
    deltas << [operation: "CREATE_OR_UPDATE", uid: uid, token: row.handed as Long, attributes: attributes]
}
return deltas
