-- The platform's own tables: on PostgreSQL and on SQLite the same.
CREATE TABLE irises(species TEXT NOT NULL, sepal_length REAL NOT NULL, petal_length REAL NOT NULL);
CREATE TABLE hypotheses(title TEXT NOT NULL, species TEXT NOT NULL, score REAL CHECK (score > 0),
                        analysis_id TEXT NOT NULL, PRIMARY KEY (title, analysis_id));
CREATE TABLE debates(analysis_id TEXT NOT NULL PRIMARY KEY, question TEXT NOT NULL, conclusion TEXT NOT NULL);
