update odoo_connections
set found_at = @now, found_version = @version, found_major = @major, found_door = @door, found_uid = @uid,
    found_lang = @lang, found_timezone = @timezone,
    found_edition = coalesce(@edition, found_edition), found_modules = coalesce(@modules, found_modules)
where agent_id = @agent and set_at = @set_at
