-- PostgreSQL: as whom queries connect. They read what is granted here, and nothing else. psql -v password=… sets its password.
DO $$ BEGIN CREATE ROLE platform_reader; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
ALTER ROLE platform_reader LOGIN PASSWORD :'password';
GRANT SELECT ON irises TO platform_reader;
