package main

func migrateRows() []row {
	return []row{{
		name: "migrate", examples: []string{"migrate", "--stack prod migrate"},
		view: view{list: "applied", columns: []column{{"VERSION", "version"}, {"FILE", "file"}}, empty: "nothing to do: the database is up to date"},
	}}
}
