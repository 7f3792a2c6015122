-- PostgreSQL: with which rights queries run. They read what is granted here, and nothing else.
DO $$ BEGIN CREATE ROLE platform_reader NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT SELECT ON irises TO platform_reader;
