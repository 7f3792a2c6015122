-- What is to be done, as the orchestrator kept it before there was a queue. PostgreSQL.
CREATE TABLE analyses(id TEXT PRIMARY KEY, script TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'queued',
                      created TIMESTAMPTZ NOT NULL DEFAULT now());
