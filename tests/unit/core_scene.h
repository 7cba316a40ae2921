/* core_scene.h - one turn of an agent, on the world of core_world.h, and what came of it. */
#ifndef CORE_SCENE_H
#define CORE_SCENE_H
#include "core_world.h"
#include "agent.h"
#include "prompt.h"

/* What came of a turn. */
struct seen {
    bool done, box_lost;
    enum agent_status status;
    char *answer, *messages;
    size_t cells, told; /* in the outcome; journalled on the way */
    int steps, phases[4];
    int64_t tokens;
};

struct scene {
    struct world w;
    struct prompts *prompts;
    struct model *model;
    struct box *box;
    struct agent *agent;
    struct transcript history;
    struct seen seen;
};

static inline void on_progress(void *ud, const struct agent_progress *p)
{
    ((struct scene *)ud)->seen.phases[p->phase]++;
}

static inline void on_cell(void *ud, const char *code, const struct cell *c)
{
    struct scene *s = ud;
    assert_non_null(code);
    assert_int_equal(c->number, 7 + (int)s->seen.told);
    s->seen.told++;
}

static inline void on_done(void *ud, struct agent_outcome *o)
{
    struct seen *seen = &((struct scene *)ud)->seen;
    autojson struct json *messages = transcript_to_json(o->transcript);
    struct str text = STR_INIT(16 << 20);
    assert_false(seen->done);
    assert_true(*o->answer);
    json_print(&text, messages);
    seen->done = true;
    seen->status = o->status;
    seen->answer = xstrdup(o->answer);
    seen->messages = str_take(&text);
    seen->cells = o->cell_n;
    seen->steps = o->steps;
    seen->tokens = o->usage.in + o->usage.out;
    seen->box_lost = o->box_lost;
}

static inline void scene_open(struct scene *s, const char *model_lines, const char *box_lines)
{
    struct err e = { 0 };
    *s = (struct scene){ 0 };
    world_open(&s->w, model_lines, box_lines);
    assert_int_equal(prompts_load(&s->prompts, &s->w.conf, &e), 0);
    if (model_replay.open(&s->model, s->w.l, &s->w.conf, conf_find_model(&s->w.conf, "tape"), &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(sandbox_fake.open(&s->box, s->w.sandbox, &(struct box_limits){ 0 }, -1, s->w.dir, &e), 0);
}

static inline void scene_start_with(struct scene *s, const char *request, const char *code)
{
    static const struct agent_events events = { on_progress, on_cell, on_done };
    struct err e = { 0 };
    const struct agent_input in = {
        .loop = s->w.l,
        .conf = &s->w.conf,
        .prompts = s->prompts,
        .model_ops = &model_replay,
        .model = s->model,
        .section = conf_find_model(&s->w.conf, "tape"),
        .box_ops = &sandbox_fake,
        .box = s->box,
        .turns = &s->history,
        .turn_n = s->history.n ? 1 : 0,
        .request = request,
        .asker = "ann",
        .code = code,
        .language = "en",
        .seed = "session-7",
        .first_cell = 7,
    };
    assert_int_equal(agent_start(&s->agent, &in, &events, s, &e), 0);
    assert_false(s->seen.done); /* never from inside */
}

static inline void scene_close(struct scene *s)
{
    agent_free(s->agent);
    sandbox_fake.close(s->box);
    model_replay.close(s->model);
    prompts_free(s->prompts);
    transcript_clear(&s->history);
    free(s->seen.answer);
    free(s->seen.messages);
    world_close(&s->w);
}

static inline void scene_play(struct scene *s, const char *model_lines, const char *box_lines)
{
    scene_open(s, model_lines, box_lines);
    scene_start_with(s, "how many rows?", NULL);
    world_run(&s->w, 3000);
    assert_true(s->seen.done);
    assert_int_equal(s->seen.told, s->seen.cells);
}

/* A turn that ends as it should in this many cells and answered model calls. */
static inline void assert_ended(const struct scene *s, enum agent_status status, size_t cells, int steps)
{
    if (s->seen.status != status || world_cells() != cells || s->seen.steps != steps)
        fail_msg("%s after %zu cells and %d steps: %s", agent_status_name(s->seen.status), world_cells(), s->seen.steps,
                 s->seen.answer);
}
#endif
