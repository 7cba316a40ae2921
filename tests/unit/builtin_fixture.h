/* builtin_fixture.h - the planner's lexicon and a few small profiles for its tests. */
#ifndef BUILTIN_FIXTURE_H
#define BUILTIN_FIXTURE_H
#include "builtin/plan.h"
#include "json.h"
#include "prompts.h"

/* clang-format off */
#define TIPS_PROFILE \
    "{\"path\":\"tips.csv\",\"name\":\"tips.csv\",\"kind\":\"csv\",\"rows\":244,\"load\":\"pd.read_csv('tips.csv')\",\"time\":null,\"columns\":[" \
    "{\"name\":\"total_bill\",\"dtype\":\"float\",\"nulls\":0,\"distinct\":229,\"min\":3.07,\"max\":50.81,\"examples\":[16.99,10.34,21.01],\"role\":\"measure\"}," \
    "{\"name\":\"tip\",\"dtype\":\"float\",\"nulls\":0,\"distinct\":123,\"min\":1,\"max\":10,\"examples\":[1.01,1.66,3.5],\"role\":\"measure\"}," \
    "{\"name\":\"smoker\",\"dtype\":\"category\",\"nulls\":0,\"distinct\":2,\"examples\":[\"No\",\"Yes\"],\"role\":\"flag\"}," \
    "{\"name\":\"day\",\"dtype\":\"category\",\"nulls\":0,\"distinct\":4,\"examples\":[\"Sat\",\"Sun\",\"Thur\",\"Fri\"],\"role\":\"group\"}," \
    "{\"name\":\"time\",\"dtype\":\"category\",\"nulls\":0,\"distinct\":2,\"examples\":[\"Dinner\",\"Lunch\"],\"role\":\"group\"}," \
    "{\"name\":\"size\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":6,\"min\":1,\"max\":6,\"examples\":[2,3,4,5,1,6],\"role\":\"group\"}]}"
#define TITANIC_PROFILE \
    "{\"path\":\"titanic.csv\",\"name\":\"titanic.csv\",\"kind\":\"csv\",\"rows\":891,\"load\":\"pd.read_csv('titanic.csv')\",\"columns\":[" \
    "{\"name\":\"PassengerId\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":891,\"min\":1,\"max\":891,\"examples\":[1,2,3],\"role\":\"id\"}," \
    "{\"name\":\"Survived\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":2,\"min\":0,\"max\":1,\"examples\":[0,1],\"role\":\"flag\"}," \
    "{\"name\":\"Pclass\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":3,\"min\":1,\"max\":3,\"examples\":[3,1,2],\"role\":\"group\"}," \
    "{\"name\":\"Name\",\"dtype\":\"text\",\"nulls\":0,\"distinct\":891,\"examples\":[\"Braund, Mr. Owen\"],\"role\":\"text\"}," \
    "{\"name\":\"Sex\",\"dtype\":\"category\",\"nulls\":0,\"distinct\":2,\"examples\":[\"male\",\"female\"],\"role\":\"group\"}," \
    "{\"name\":\"Age\",\"dtype\":\"float\",\"nulls\":177,\"distinct\":88,\"min\":0.42,\"max\":80,\"examples\":[22,38,26],\"role\":\"measure\"}," \
    "{\"name\":\"SibSp\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":7,\"min\":0,\"max\":8,\"examples\":[0,1,2],\"role\":\"group\"}," \
    "{\"name\":\"Fare\",\"dtype\":\"float\",\"nulls\":0,\"distinct\":248,\"min\":0,\"max\":512.3292,\"examples\":[7.25],\"role\":\"measure\"}]}"
#define MACRO_PROFILE \
    "{\"path\":\"macro.csv\",\"name\":\"macro.csv\",\"kind\":\"csv\",\"rows\":203,\"load\":\"pd.read_csv('macro.csv')\"," \
    "\"time\":{\"columns\":[\"year\",\"quarter\"],\"freq\":\"quarter\",\"expr\":\"pd.to_datetime({'year': df['year'], 'month': df['quarter'] * 3 - 2, 'day': 1})\"},\"columns\":[" \
    "{\"name\":\"year\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":51,\"min\":1959,\"max\":2009,\"examples\":[1959],\"role\":\"year\"}," \
    "{\"name\":\"quarter\",\"dtype\":\"int\",\"nulls\":0,\"distinct\":4,\"min\":1,\"max\":4,\"examples\":[1,2,3,4],\"role\":\"group\"}," \
    "{\"name\":\"unemp\",\"dtype\":\"float\",\"nulls\":0,\"distinct\":60,\"min\":3.4,\"max\":10.7,\"examples\":[5.8],\"role\":\"measure\"}," \
    "{\"name\":\"unit_price\",\"dtype\":\"float\",\"nulls\":0,\"distinct\":60,\"min\":1,\"max\":9,\"examples\":[5.8],\"role\":\"measure\"}," \
    "{\"name\":\"total_price\",\"dtype\":\"float\",\"nulls\":0,\"distinct\":60,\"min\":1,\"max\":90,\"examples\":[5.8],\"role\":\"measure\"}]}"
/* clang-format on */

struct fixture {
    struct bi_lexicon *lexicon;
    struct json *files;
    struct bi_tables tables;
};

static inline void fixture_open(struct fixture *f, const char *profiles)
{
    struct err e = { 0 };
    autofree char *prompts = NULL;
    *f = (struct fixture){ 0 };
    if (prompt_dir_resolve(&prompts, "prompts", &e) < 0 && prompt_dir_resolve(&prompts, "", &e) < 0)
        fail_msg("%s", e.msg);
    if (bi_lexicon_open(&f->lexicon, prompts, &e) < 0)
        fail_msg("%s", e.msg);
    if (json_parse(&f->files, profiles, strlen(profiles), 1 << 20, &e) < 0)
        fail_msg("%s", e.msg);
    bi_tables_read(&f->tables, f->lexicon, f->files);
}

static inline void fixture_close(struct fixture *f)
{
    bi_tables_clear(&f->tables);
    json_free(f->files);
    bi_lexicon_close(f->lexicon);
}
#endif
