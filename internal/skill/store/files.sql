select path, content, sha256, executable
from skill_files
where skill_id = @id and version = @version
order by path collate "C"
