drop function if exists {routine}()
/
