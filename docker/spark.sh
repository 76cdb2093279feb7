#!/bin/sh
# A Spark master or worker from the package's own Spark.
set -eu

SPARK_HOME="$(python -c 'import pyspark; print(pyspark.__path__[0])')"
export SPARK_HOME SPARK_LOCAL_DIRS=/tmp

case "$1" in
    master) set -- master.Master --host spark-master --port 7077 ;;
    worker) set -- worker.Worker --work-dir /tmp spark://spark-master:7077 ;;
    *) echo "say master or worker" >&2; exit 2 ;;
esac
class="org.apache.spark.deploy.$1"
shift
exec "$SPARK_HOME/bin/spark-class" "$class" "$@"
