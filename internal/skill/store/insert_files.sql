insert into skill_files (skill_id, version, path, content, sha256, executable)
select @id, @version::integer, f.path, f.content, f.sum, f.executable
from unnest(@paths::text[], @contents::bytea[], @sums::bytea[], @executable::boolean[]) as f (path, content, sum, executable)
