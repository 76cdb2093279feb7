// Live synchronisation for ConnId's ScriptedSQL connector (midPoint, Apache Syncope), deletes included.
//
// The queue of each table is made by `eventlog track --for connid --identity COLUMN TABLE`; see docs/connid.md.
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
def last = { sql.firstRow("select handed from " + queue + "_last").handed as Long }

if (action == "GET_LATEST_SYNC_TOKEN") {
    def oldest = sql.firstRow("select min(handed) as handed from " + queue).handed
    return oldest == null ? last() : (oldest as Long) - 1
}

// rows are named by their places: the queue is never locked where others write
def change = { statement, rows, number ->
    rows.collate(most).each { sql.execute(statement + " and place in (" + it*.place.join(", ") + ")", [number]) }
}
def finished = token == null ? 0L : token as Long
change("delete from " + queue + " where handed <= ?", sql.rows("select place from " + queue + " where handed <= ?", [finished]), finished)

def added = sql.rows("select place from " + queue + " where handed is null order by place", 1, most)
if (added) {
    def before = last()
    def shift = before + 1 - (added.first().place as Long)
    def highest = shift + (added.last().place as Long)
    if (sql.executeUpdate("update " + queue + "_last set handed = ? where handed = ?", [highest, before]) != 1) {
        throw new IllegalStateException("another reader took numbers of " + queue + "; a queue has one reader")
    }
    change("update " + queue + " set handed = place + ? where handed is null", added, shift)
}

def deltas = []
def read = "select handed, action, " + source.identity + " as object_uid from " + queue + " where handed > ? order by handed"
sql.rows(read, [finished], 1, most).each { row ->
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
