# The baseline of BenchmarkScale: SQLite FTS5 over the same notes and queries.
# Reads lines from standard input, a note each, then a blank line, then a query
# each; prints a line for each tokenizer.
import sqlite3
import sys
import time

lines = sys.stdin.read().split("\n")
split = lines.index("")
notes, queries = lines[:split], [q for q in lines[split + 1:] if q]
for tokenizer in ("unicode61", "trigram"):
    db = sqlite3.connect("")
    db.execute(f"create virtual table notes using fts5(content, tokenize='{tokenizer}')")
    start = time.perf_counter()
    db.executemany("insert into notes values (?)", ((n,) for n in notes))
    db.commit()
    filled = time.perf_counter() - start
    times = []
    for query in queries:
        match = " or ".join('"' + word + '"' for word in query.split())
        start = time.perf_counter()
        db.execute("select rowid, content from notes where notes match ? order by rank limit 10", (match,)).fetchall()
        times.append((time.perf_counter() - start) * 1000)
    times.sort()
    size = db.execute("select page_count * page_size from pragma_page_count, pragma_page_size").fetchone()[0]
    print(f"{tokenizer}: p50 {times[len(times) // 2]:.2f} ms, p99 {times[len(times) * 99 // 100]:.2f} ms, "
          f"filled in {filled:.0f} s, {size >> 20} MB")
