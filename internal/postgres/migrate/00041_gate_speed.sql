-- +goose Up
-- Every call waits for audit_append and bucket_draw, so they are made cheap:
-- what is almost always there is looked for before it is inserted. PostgreSQL plans a
-- function in language sql anew with every statement that calls it, and cannot
-- inline one that is called immutable while its parts are only stable;
-- plpgsql keeps its plans for the session.

-- +goose StatementBegin
create or replace function audit_content(a audit) returns bytea language plpgsql immutable as $$
begin
    return sha256(convert_to(jsonb_build_array(
        a.agent_id, a.seq, (extract(epoch from a.at) * 1000000)::bigint, a.id, a.kind, a.request_id, a.door, a.credential_id,
        a.method, a.tool, a.category, a.decision, a.reason, a.outcome, a.arguments, a.duration_us)::text, 'UTF8'));
end
$$;
-- +goose StatementEnd

-- As before: appends rows, a JSON array of objects named like the columns, to
-- the chains of their agents, which are locked in one order; with again, rows
-- that are there already are passed over.
-- +goose StatementBegin
create or replace function audit_append(rows jsonb, again boolean default false) returns void language plpgsql as $$
declare
    agent text;
    chain audit_heads;
    stamp timestamptz;
    g     audit;
    given audit[];
begin
    for agent in select distinct value ->> 'agent_id' collate "C" from jsonb_array_elements(rows) order by 1 loop
        select * into chain from audit_heads where agent_id = agent for update;
        if not found then
            insert into audit_heads values (agent, 0, '') on conflict do nothing;
            select * into chain from audit_heads where agent_id = agent for update;
        end if;
        stamp := clock_timestamp();
        given := '{}';
        for g in select r.* from jsonb_array_elements(rows) with ordinality e, jsonb_populate_record(null::audit, e.value) r
                 where r.agent_id = agent order by e.ordinality loop
            continue when again and exists (select from audit a where a.agent_id = agent and a.seq > chain.seq - 10000 and a.id = g.id);
            g.seq := chain.seq + 1;
            g.at := stamp;
            g.prev := chain.hash;
            g.hash := sha256(g.prev || audit_content(g));
            chain.seq := g.seq;
            chain.hash := g.hash;
            given := given || g;
        end loop;
        continue when given = '{}';
        insert into audit select * from unnest(given);
        update audit_heads set seq = chain.seq, hash = chain.hash where agent_id = agent;
    end loop;
end
$$;
-- +goose StatementEnd

-- As before: draws on several buckets at once, in the order of their keys.
-- +goose StatementBegin
create or replace function bucket_draw(wanted jsonb)
returns table (bucket text, granted double precision, tokens_left double precision) language plpgsql as $$
declare
    w record;
    b buckets;
begin
    for w in select * from jsonb_to_recordset(wanted) as r (key text, burst double precision, rate double precision, n integer) loop
        select * into b from buckets where key = w.key for update;
        if not found then
            insert into buckets values (w.key, greatest(w.burst, 1), true, clock_timestamp()) on conflict (key) do nothing;
            select * into b from buckets where key = w.key for update;
        end if;
        tokens_left := least(greatest(w.burst, 1), b.tokens + extract(epoch from clock_timestamp() - b.at) * w.rate / 60);
        granted := least(floor(tokens_left), w.n);
        tokens_left := tokens_left - granted;
        update buckets set tokens = tokens_left, at = clock_timestamp() where key = w.key;
        bucket := w.key;
        return next;
    end loop;
end
$$;
-- +goose StatementEnd
