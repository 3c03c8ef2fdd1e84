delete from people where id = @id
