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
    char *answer, *messages, *unsupported;
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
    struct json *files; /* profiles */
    const char *notes;
    const struct transcript *turns; /* instead of history */
    const int64_t *turn_ids;
    size_t turn_n;
    struct token_scale scale;
    char *kept_notes; /* as the agent wants them kept */
    int64_t noted, shortened;
    int first_cell;    /* 0: as after six others */
    int64_t allowance; /* tokens; 0: as many as it likes */
    struct seen seen;
};

static inline void on_progress(void *ud, const struct agent_progress *p)
{
    ((struct scene *)ud)->seen.phases[p->phase]++;
}

static inline void on_cell(void *ud, const char *code, struct cell *c)
{
    struct scene *s = ud;
    assert_non_null(code);
    assert_int_equal(c->number, (s->first_cell ? s->first_cell : 7) + (int)s->seen.told);
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
    seen->unsupported = o->unsupported ? xstrdup(o->unsupported) : NULL;
    seen->cells = o->cell_n;
    seen->steps = o->steps;
    seen->tokens = o->usage.in + o->usage.out;
    seen->box_lost = o->box_lost;
}

static inline void on_shortened(void *ud, const char *notes, int64_t noted, int64_t shortened)
{
    struct scene *s = ud;
    if (notes) {
        free(s->kept_notes);
        s->kept_notes = xstrdup(notes);
        s->noted = noted;
    }
    s->shortened = shortened;
}

static inline enum agent_spending on_may_spend(void *ud, int64_t in_tokens)
{
    const struct scene *s = ud;
    if (s->allowance == 0 || 2 * in_tokens <= s->allowance)
        return SPEND_FREELY;
    return in_tokens <= s->allowance ? SPEND_LAST : SPEND_NOTHING;
}

static inline void on_spent(void *ud, const struct model_usage *u)
{
    struct scene *s = ud;
    if (s->allowance)
        s->allowance -= u->in + u->out;
}

/* ---- what the model was sent: the port's fake, with a window in it ---- */

enum { SENT_MAX = 128 };
static struct {
    char *text[SENT_MAX]; /* messages as JSON */
    int64_t tokens[SENT_MAX], max_output[SENT_MAX];
    size_t n;
} sent;

static inline int spy_ask(struct model_call **out, struct model *m, const struct model_ask *a,
                          const struct model_events *ev, void *ud, struct err *e)
{
    struct transcript view = { .n = a->msg_n };
    struct str text = STR_INIT(64 << 20);
    memcpy(&view.at, &a->msgs, sizeof(view.at));
    autojson struct json *messages = transcript_to_json(&view);
    json_print(&text, messages);
    assert_true(sent.n < SENT_MAX);
    sent.max_output[sent.n] = a->max_output;
    sent.tokens[sent.n] = tokens_of(&view, 0, view.n);
    sent.text[sent.n++] = str_take(&text);
    return model_replay.ask(out, m, a, ev, ud, e);
}

static inline void spy_cancel(struct model_call *c)
{
    model_replay.cancel(c);
}

static const struct model_ops model_spy = { .name = "replay", .ask = spy_ask, .cancel = spy_cancel };

/* The same as a whole dialect, for a hub. */
static inline int spy_open(struct model **out, struct loop *l, const struct conf *c, const struct conf_model *section,
                           struct err *e)
{
    return model_replay.open(out, l, c, section, e);
}

static inline void spy_close(struct model *m)
{
    model_replay.close(m);
}

static const struct model_ops model_spy_whole __attribute__((
    unused)) = { .name = "replay", .open = spy_open, .ask = spy_ask, .cancel = spy_cancel, .close = spy_close };

static inline void sent_forget(void)
{
    for (size_t i = 0; i < sent.n; i++)
        free(sent.text[i]);
    sent.n = 0;
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
    static const struct agent_events events = {
        .progress = on_progress,
        .cell = on_cell,
        .shortened = on_shortened,
        .may_spend = on_may_spend,
        .spent = on_spent,
        .done = on_done,
    };
    struct err e = { 0 };
    const struct agent_input in = {
        .loop = s->w.l,
        .conf = &s->w.conf,
        .prompts = s->prompts,
        .model_ops = &model_spy,
        .model = s->model,
        .section = conf_find_model(&s->w.conf, "tape"),
        .box_ops = &sandbox_fake,
        .box = s->box,
        .scale = &s->scale,
        .notes = s->notes,
        .turns = s->turns ? s->turns : &s->history,
        .turn_ids = s->turn_ids,
        .turn_n = s->turns       ? s->turn_n
                  : s->history.n ? 1
                                 : 0,
        .files = s->files,
        .request = request,
        .asker = "ann",
        .code = code,
        .language = "en",
        .seed = "session-7",
        .first_cell = s->first_cell ? s->first_cell : 7,
        .estimate = true,
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
    free(s->kept_notes);
    sent_forget();
    free(s->seen.messages);
    free(s->seen.unsupported);
    json_free(s->files);
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
