select f.skill_id, f.path, f.content, f.executable
from skills s join skill_files f on f.skill_id = s.id and f.version = s.version
where s.id = any (@ids::text[])
order by f.skill_id, f.path collate "C"
