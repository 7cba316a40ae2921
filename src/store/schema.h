/* schema.h - the numbered steps of the database's schema. A landed step is never edited; a change is a new step. Private to store/. */
#ifndef SCHEMA_H
#define SCHEMA_H

static const char *const schema_steps[] = {
    /* 1: what a single machine needs to lose and repeat nothing */
    "CREATE TABLE sessions("
    " id TEXT PRIMARY KEY, platform TEXT NOT NULL, room TEXT NOT NULL, thread TEXT NOT NULL," /* thread '': the room as a whole */
    " created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL, UNIQUE(platform, room, thread)) WITHOUT ROWID;"

    "CREATE TABLE inbox("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT, platform TEXT NOT NULL, event_id TEXT NOT NULL, room TEXT NOT NULL, thread TEXT,"
    " sender TEXT NOT NULL, name TEXT, text TEXT NOT NULL, session TEXT REFERENCES sessions(id), sent_ms INTEGER NOT NULL,"
    " state INTEGER NOT NULL, UNIQUE(platform, event_id));"
    "CREATE INDEX inbox_open ON inbox(seq) WHERE state < 3;"

    "CREATE TABLE files("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL REFERENCES sessions(id), seq INTEGER NOT NULL, name TEXT NOT NULL,"
    " version INTEGER NOT NULL, bytes INTEGER NOT NULL, profile TEXT, UNIQUE(session, name, version));"

    "CREATE TABLE turns("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL REFERENCES sessions(id), seq INTEGER NOT NULL, request TEXT NOT NULL,"
    " answer TEXT, messages TEXT, receipt TEXT, status TEXT NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER);"
    "CREATE INDEX turns_of ON turns(session, id);"

    "CREATE TABLE cells("
    " session TEXT NOT NULL REFERENCES sessions(id), number INTEGER NOT NULL, turn INTEGER NOT NULL REFERENCES turns(id),"
    " code TEXT NOT NULL, json TEXT NOT NULL, PRIMARY KEY(session, number)) WITHOUT ROWID;"

    "CREATE TABLE outbox("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, txn TEXT NOT NULL UNIQUE, turn INTEGER NOT NULL, platform TEXT NOT NULL, session TEXT,"
    " room TEXT NOT NULL, thread TEXT, reply_to TEXT, markdown TEXT NOT NULL, receipt TEXT, figures TEXT, files TEXT,"
    " tries INTEGER NOT NULL DEFAULT 0, sent_ms INTEGER);"
    "CREATE INDEX outbox_open ON outbox(id) WHERE sent_ms IS NULL;"

    "CREATE TABLE usage("
    " at_ms INTEGER NOT NULL, session TEXT NOT NULL, person TEXT NOT NULL, model TEXT NOT NULL,"
    " tokens_in INTEGER NOT NULL, tokens_cached INTEGER NOT NULL, tokens_out INTEGER NOT NULL);"
    "CREATE INDEX usage_at ON usage(at_ms);",
    /* 2: what a call cost, and how a long conversation is carried */
    "ALTER TABLE usage ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;"
    "CREATE INDEX usage_of ON usage(session, at_ms);"
    "CREATE TABLE notes("
    " session TEXT PRIMARY KEY REFERENCES sessions(id), notes TEXT NOT NULL, noted INTEGER NOT NULL, shortened INTEGER NOT NULL)"
    " WITHOUT ROWID;",
    /* 3: what chat adapters keep for themselves */
    "CREATE TABLE kept("
    " platform TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY(platform, kind, key))"
    " WITHOUT ROWID;",
    /* 4: questions that were edited after their answer */
    "ALTER TABLE inbox ADD COLUMN about TEXT;"
    "ALTER TABLE outbox ADD COLUMN amends TEXT;"
    "ALTER TABLE cells ADD COLUMN base INTEGER;"
    "CREATE INDEX outbox_to ON outbox(platform, reply_to);",
    /* 5: variables that outlive their box */
    "CREATE TABLE checkpoints("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL REFERENCES sessions(id), cell INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL, bytes INTEGER NOT NULL, report TEXT NOT NULL);"
    "CREATE INDEX checkpoints_of ON checkpoints(session, id);"
    "ALTER TABLE sessions ADD COLUMN base INTEGER;", /* NULL: its newest cell */
    /* 6: files that cells make are versions, too; a branch has files of its own */
    "ALTER TABLE files ADD COLUMN cell INTEGER NOT NULL DEFAULT 0;" /* that made it; 0: a person sent it */
    "ALTER TABLE files ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;" /* 1: this version is that it was deleted */
    "CREATE TABLE lines("
    " session TEXT NOT NULL REFERENCES sessions(id), line INTEGER NOT NULL, parent INTEGER NOT NULL, after INTEGER NOT NULL,"
    " first INTEGER NOT NULL, PRIMARY KEY(session, line)) WITHOUT ROWID;",
    /* 7: from a message to its conversation, a choice of model that outlives the program, and what is old or to be forgotten */
    "ALTER TABLE sessions ADD COLUMN model TEXT;" /* NULL: the default */
    "CREATE INDEX sessions_used ON sessions(used_ms);"
    "CREATE INDEX inbox_about ON inbox(platform, about) WHERE about IS NOT NULL;"
    "CREATE INDEX inbox_of ON inbox(session);"
    "CREATE INDEX turns_for ON turns(seq);"
    "CREATE INDEX outbox_of ON outbox(session);",
    /* 8: a deleted message takes its files with it */
    "ALTER TABLE files ADD COLUMN message TEXT;" /* that brought it; NULL: no message did */
    "UPDATE files SET message=(SELECT event_id FROM inbox WHERE inbox.seq=files.seq) WHERE cell=0;"
    "CREATE INDEX files_of ON files(message) WHERE message IS NOT NULL;"
    "ALTER TABLE inbox ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE sessions ADD COLUMN withdrawn TEXT;", /* names, one a line, that the model is to be told of; NULL: none */
};
#endif
