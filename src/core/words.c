/* words.c - the sentences. */
#include "words.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "str.h"

enum { WORDS_MAX = 16 << 20 }; /* of one filled template: an answer may be in it */

static const struct {
    const char *en, *zh;
} table[WORDS] = {
    [WORD_QUEUED] = { "Queued, number {a} in line", "排队中，第 {a} 位" },
    [WORD_PREPARING] = { "Getting the notebook ready", "正在准备环境" },
    [WORD_THINKING] = { "Thinking", "思考中" },
    [WORD_RUNNING] = { "Running cell {a}", "正在运行第 {a} 个单元" },
    [WORD_REPAIRING] = { "Repairing, try {a} of {b}", "正在修正，第 {a} 次，共 {b} 次" },
    [WORD_FINISHING] = { "Summing up", "正在总结" },
    [WORD_SECONDS] = { "{a}, {b} s", "{a}，已 {b} 秒" },

    [WORD_MODEL_DOWN] = { "The language model can't be reached right now, so this is not answered. Your files and "
                          "variables are kept; please ask again in a few minutes.",
                          "目前无法连接语言模型，因此这个问题还没有回答。文件和变量都已保留，请过几分钟再问一次。" },
    [WORD_MODEL_SETUP] = { "The language model did not accept this request. Whoever runs this bot finds the reason in its "
                           "log; asking again will not help until then.",
                           "语言模型没有接受这个请求。原因写在服务日志里，请联系管理员；在此之前再问也不会成功。" },
    [WORD_NO_ANSWER] = { "The language model gave no answer. Please ask again, perhaps in other words or in smaller parts.",
                         "语言模型没有给出回答。请换个说法，或拆成小问题再问一次。" },
    [WORD_REFUSED] = { "The language model declined to answer this.", "语言模型拒绝回答这个问题。" },
    [WORD_GAVE_UP_REPAIRS] = { "I could not work this out: {a} programs in a row failed, the last one with `{b}`. Nothing "
                               "was computed that I could vouch for. A more exact question (which file, which column) may help.",
                               "没有算出结果：连续 {a} 个程序都失败了，最后的错误是 `{b}`。"
                               "请说得更具体一些（哪个文件、哪一列）再试。" },
    [WORD_GAVE_UP_MALFORMED] = { "I could not work this out: the language model kept sending programs that can't be run. "
                                 "Please ask again, perhaps for less at once.",
                                 "没有算出结果：语言模型一直给出无法运行的程序。请再问一次，或一次少问一点。" },
    [WORD_GAVE_UP_STEPS] = { "I stopped after {a} steps without an answer. Please ask for less at once.",
                             "进行了 {a} 步仍没有答案，已停止。请一次少问一点。" },
    [WORD_GAVE_UP_TIME] = { "I stopped because this took longer than {a} s. Your variables are kept; a smaller question "
                            "may go through.",
                            "用时超过 {a} 秒，已停止。变量都已保留，请把问题拆小再试。" },
    [WORD_GAVE_UP_LOOP] = { "I stopped because the same step kept repeating without an answer. Please ask in other words.",
                            "同一步骤不断重复而没有答案，已停止。请换个说法再问。" },
    [WORD_GAVE_UP_BUDGET] = { "I stopped because the budget for this is used up. What was computed is kept; `limits` says what is "
                              "left and when there is more.",
                              "预算已用完，已停止。已计算的内容都保留；`limits` 可查看余额和恢复时间。" },
    [WORD_TOO_LONG] = { "This conversation is longer than the model can read, even after shortening it. Please go on in a new thread, or "
                        "choose a model with a larger window with `model`.",
                        "对话超过了模型能读取的长度，缩短后仍然过长。请另开一个会话继续，或用 `model` 更换窗口更大的模型。" },
    [WORD_CONTEXT_LOST] = { "*(The model's server reads less of a conversation than it is set up for, so earlier parts may have been "
                            "missed here. Whoever runs this bot can raise its window.)*",
                            "*（模型服务器读取的内容少于设定，之前的部分可能被忽略。管理员可以调大它的窗口。）*" },
    [WORD_ANSWER_CUT] = { "{a}\n\n*(The answer was cut here: it reached the model's length limit.)*",
                          "{a}\n\n*（回答在此中断：达到了模型的长度上限。）*" },
    [WORD_SEE_FIGURE] = { "See the figure.", "见图。" },
    [WORD_CANCELLED] = { "Stopped by {a}. Variables and files are kept.", "已被 {a} 停止。变量和文件都已保留。" },
    [WORD_BOX_FAILED] = { "The sandbox failed in the middle of this, so the variables are gone; your files are kept. "
                          "Please ask again: it starts afresh.",
                          "沙箱中途出错，变量已丢失，文件仍在。请再问一次，会重新开始。" },
    [WORD_VARIABLES_GONE] = { "The sandbox had to be restarted since your last question: its variables are gone, your files are there again.",
                              "自上一个问题以来沙箱已重新启动：变量已丢失，文件已重新放入。" },
    [WORD_THAWING] = { "Putting the variables back", "正在恢复变量" },
    [WORD_THAWED_LOST] = { "*(Variables were put back from disk. Not among them: {a}.)*",
                           "*（变量已从磁盘恢复，以下除外：{a}。）*" },
    [WORD_THAWED_RERUN] = { "*(To put variables back, these cells were run again: {a}.)*",
                            "*（为恢复变量，重新运行了单元 {a}。）*" },
    [WORD_THAWED_FAILED] = { "*(These cells could not be run again, so what only they made is missing: {a}.)*",
                             "*（以下单元无法重新运行，只由它们生成的内容已丢失：{a}。）*" },
    [WORD_THAWED_NOT_RERUN] = { "cell {a} was not run again: {b}", "单元 {a} 没有重新运行：{b}" },
    [WORD_THAWED_NOTES] = { "*(About the variables that were put back: {a}.)*", "*（关于恢复的变量：{a}。）*" },
    [WORD_BOX_CLOSED] = { "The sandbox could not be started just now; nothing is lost. Please ask again in a minute, and "
                          "tell whoever runs this bot if it happens again.",
                          "暂时无法启动沙箱，没有丢失任何内容。请一分钟后再试；若一直如此，请告知管理员。" },
    [WORD_INTERNAL] = { "Something went wrong on my side and this is not answered. Please ask again; whoever runs this bot "
                        "finds the details in its log.",
                        "我这边出了问题，这个问题还没有回答。请再问一次；详情见服务日志。" },
    [WORD_ANSWER_OLD] = { "*The question was edited; the new answer is further down.*",
                          "*问题已被修改，新的回答在下面。*" },
    [WORD_STALE] = { "The service was away for more than a day, so this question was not worked on. Ask it again if you still "
                     "want to know.",
                     "服务停止超过一天，这个问题没有处理。如果仍然需要，请再问一次。" },
    [WORD_CUT_BY_RESTART] = { "This was cut off by a restart and was not run again by itself. Say `rerun`, or ask again. Files are "
                              "kept; variables come back as they were after the last program that had finished.",
                              "这个问题因重启而中断，没有自动重新运行。请说 `rerun` 或再问一次。文件仍在，变量会恢复到最后一个已运行完的程序之后。" },

    [WORD_CODE_SILENT] = { "Ran without output.", "运行完毕，没有输出。" },
    [WORD_CODE_FAILED] = { "**{a}** in line {b}", "**{a}**，第 {b} 行" },
    [WORD_CODE_ENDED] = { "The cell was ended: {a}.", "单元被终止：{a}。" },
    [WORD_VARIABLES_KEPT] = { "Variables are kept.", "变量都已保留。" },
    [WORD_VARIABLES_BACK] = { "Variables are as they were before this cell.", "变量已回到这个单元运行之前的状态。" },
    [WORD_VARIABLES_LOST] = { "Variables are lost; files are kept.", "变量已丢失，文件仍在。" },

    [WORD_FILE_NAME] = { "`{a}` was not taken: a file can't have that name. Please rename it and send it again.",
                         "没有接收 `{a}`：文件不能用这个名字。请改名后再发。" },
    [WORD_FILE_BIG] = { "`{a}` was not taken: it is larger than {b}.", "没有接收 `{a}`：超过了 {b}。" },
    [WORD_FILES_FULL] = { "`{a}` was not taken: the files of this conversation would take more than {b} together.",
                          "没有接收 `{a}`：这个会话的文件合计将超过 {b}。" },
    [WORD_EXPORTED] = { "Here is this conversation as a notebook, with its data. `sandbook export {a}` writes the same where the service runs.",
                        "这个会话的笔记本和数据。在服务器上运行 `sandbook export {a}` 可得到同样的内容。" },
    [WORD_EXPORT_BIG] = { "The notebook with its data is larger than {a}. Whoever runs the service can write it to disk with `sandbook "
                          "export {b}`.",
                          "笔记本和数据超过了 {a}。服务的管理员可以用 `sandbook export {b}` 写到磁盘。" },
    [WORD_NOT_KEPT] = { "Not kept: {a}.", "未能保留：{a}。" },
    [WORD_FORMULAS] = { "*(Some cells in {a} would run as formulas in a spreadsheet. If they hold data of others, import them as text.)*",
                        "*（{a} 中有会被电子表格当作公式执行的单元格：如果数据来自他人，请以文本方式导入。）*" },
    [WORD_FILE_FAILED] = { "`{a}` was not taken: {b}. Please send it again.", "没有接收 `{a}`：{b}。请再发一次。" },
    [WORD_FILE_STORE] = { "`{a}` could not be stored just now. Please send it again; if that fails too, tell whoever runs "
                          "this bot: its disk may be full.",
                          "暂时无法保存 `{a}`。请再发一次；若仍失败，请告知管理员：磁盘可能已满。" },
    [WORD_FILE_GOT] = { "Got {a}. What would you like to know?", "已收到 {a}。想了解什么？" },
    [WORD_FILE_LATE] = { "Got {a}. Say `rerun` to put your last question to it.",
                         "已收到 {a}。说 `rerun` 可用它重新回答上一个问题。" },
    [WORD_FILE_UNREAD] = { "`{a}` could not be looked into", "无法读取 `{a}`" },
    [WORD_NOT_WRITTEN] = { "*(There is no file `{a}`: it was named but not written.)*",
                           "*（没有文件 `{a}`：提到了但没有写出。）*" },
    [WORD_UNSUPPORTED] = { "*(Not supported by any output: {a}. Please check before use.)*",
                           "*（没有任何输出支持以下内容：{a}。使用前请核实。）*" },
    [WORD_UNREAD] = { "*(No program read any of the files for this.)*", "*（这次没有程序读取任何文件。）*" },
    [WORD_ANOTHER] = { "*(The question names `{a}`; what was read is `{b}`.)*",
                       "*（问题提到 `{a}`，而读取的是 `{b}`。）*" },
    [WORD_NO_CHART] = { "*(No chart was made for this, although the answer speaks of one.)*",
                        "*（回答提到了图，但这次没有生成任何图。）*" },
    [WORD_NO_COUNT] = { "*(The question asks how many there are; {a} cannot be a count. Please check before use.)*",
                        "*（问题问的是数量，{a} 不可能是数量。使用前请核实。）*" },
    [WORD_UNHEEDED] = { "*(A note stands below the output: {a} Please check before use.)*",
                        "*（输出下有提示：{a} 使用前请核实。）*" },
    [WORD_MISREAD] = { "*(An output shows it otherwise: {a}. Please check before use.)*",
                       "*（输出中的结果不同：{a}。使用前请核实。）*" },
    [WORD_OTHER] = { "*(Computed from {a}; no column is called what the question asks for. Please check before use.)*",
                     "*（由 {a} 算出；没有与问题同名的列。使用前请核实。）*" },
    [WORD_LAST_OUTPUT] = { "The newest program printed:\n```\n{a}\n```", "最近的程序输出：\n```\n{a}\n```" },
    [WORD_FALLBACK] = { "*(Answered by the model `{a}`: `{b}` could not be asked.)*",
                        "*（由模型 `{a}` 回答：无法使用 `{b}`。）*" },
    [WORD_MORE_FILES] = { "*({a} more files were made; they stay in the notebook's folder.)*",
                          "*（另有 {a} 个文件留在笔记本的文件夹里。）*" },

    [WORD_RECEIPT_CELL] = { "{a} cell", "{a} 个单元" },
    [WORD_RECEIPT_CELLS] = { "{a} cells", "{a} 个单元" },
    [WORD_RECEIPT_ROWS] = { "{a} rows", "{a} 行" },
    [WORD_RECEIPT_TIME] = { "{a} s", "{a} 秒" },
    [WORD_RECEIPT_TOKENS] = { "{a} tokens", "{a} token" },

    [WORD_NOTHING_RUNS] = { "Nothing is running here.", "这里没有正在运行的任务。" },
    [WORD_STOPPING] = { "Stopping.", "正在停止。" },
    [WORD_NO_FILES] = { "No files yet. Send one, then ask.", "还没有文件。请先发送文件，再提问。" },
    [WORD_NO_VARS] = { "No variables yet.", "还没有变量。" },
    [WORD_NO_CODE] = { "Nothing was run yet.", "还没有运行过代码。" },
    [WORD_NO_HISTORY] = { "No questions yet.", "还没有问题。" },
    [WORD_NO_RERUN] = { "There is no earlier question to run again.", "没有可以重新运行的问题。" },
    [WORD_WENT_BACK] = { "Variables are what they were after cell {a}.", "变量已回到第 {a} 个单元之后的状态。" },
    [WORD_WENT_BACK_ALL] = { "All variables are gone, as before the first cell.",
                             "变量已全部清空，回到第一个单元之前的状态。" },
    [WORD_STATE_GONE] = { "Variables stay as they are: {a}.", "变量保持不变：{a}。" },
    [WORD_NO_CELL] = { "`{a}` is not the number of a cell. `code` shows the cells with their numbers.",
                       "`{a}` 不是单元编号。`code` 会列出各单元及其编号。" },
    [WORD_WHICH_CELL] = { "Which cell? `code` shows the cells with their numbers.",
                          "哪个单元？`code` 会列出各单元及其编号。" },
    [WORD_NO_QUESTION] = { "There is no question {a}: `history` lists {b}.",
                           "没有第 {a} 个问题：`history` 共列出 {b} 个。" },
    [WORD_RESET] = { "Variables are gone, files are kept.", "变量已清空，文件仍在。" },
    [WORD_TOKEN] = { "{a} token", "{a} token" },
    [WORD_USAGE_ONE] = { "This conversation so far: {a} in {b} call of a model.",
                         "这个会话至今：{a}，调用模型 {b} 次。" },
    [WORD_USAGE] = { "This conversation so far: {a} in {b} calls of a model.", "这个会话至今：{a}，调用模型 {b} 次。" },
    [WORD_FORGOTTEN] = { "Everything of this conversation is forgotten: what was said, code, files and variables. "
                         "What was posted here stays with the chat server.",
                         "这个会话的一切都已忘记：对话、代码、文件和变量。已发到聊天里的内容仍在聊天服务器上。" },
    [WORD_NO_LIMIT] = { "no limit", "不限" },
    [WORD_LIMIT_CELL] = { "A program may run {a} s and use {b} MB.", "一个程序最多运行 {a} 秒，使用 {b} MB 内存。" },
    [WORD_LIMIT_TURN] = { "A question may take {a} s and {b} steps.", "一个问题最多用 {a} 秒、{b} 步。" },
    [WORD_LIMIT_FILE] = { "A file may have up to {a} MB.", "一个文件最大 {a} MB。" },
    [WORD_SCOPE_TURN] = { "one question", "一个问题" },
    [WORD_SCOPE_PERSON] = { "your budget of today", "你今天的预算" },
    [WORD_SCOPE_ROOM] = { "this room's budget of today", "这个房间今天的预算" },
    [WORD_SCOPE_DAY] = { "the budget of today for all", "今天的总预算" },
    [WORD_BUDGET_NEAR] = { "{a} % of {b} is used. `limits` says more.", "{b}已用 {a} %。`limits` 可查看详情。" },
    [WORD_BUDGET_OVER] = { "This is not answered: {a} is used up until 00:00 UTC. Programs in ```` ```python ```` blocks "
                           "and commands still work.",
                           "没有回答：{a}已用完，UTC 零点恢复。```` ```python ```` 代码块和命令仍然可用。" },
    [WORD_MODEL_IS] = { "Model here: `{a}`. Available: {b}. `model NAME` changes it.",
                        "当前模型：`{a}`。可选：{b}。用 `model 名称` 切换。" },
    [WORD_MODEL_NOW] = { "From the next question on: `{a}`.", "从下一个问题起使用 `{a}`。" },
    [WORD_MODEL_NONE] = { "There is no model `{a}`. Available: {b}.", "没有模型 `{a}`。可选：{b}。" },
    [WORD_SLOW_DOWN] = { "That was a great many questions, each asked the moment the last was answered, so I pause for ten "
                         "minutes in case two bots are talking to each other.",
                         "提问过于频繁（每次回答后立即再问）。为防止两个机器人互相对话，暂停十分钟。" },
    [WORD_TOO_MANY] = { "You have {a} questions waiting already. Ask this one again when some are answered.",
                        "你已有 {a} 个问题在等待。等其中一些得到回答后再问。" },
    [WORD_NOT_YOU] = { "You may not ask this bot anything: whoever runs it keeps a list of people, and you are not on it. "
                       "They can add you.",
                       "你没有使用这个机器人的权限：管理员维护着一份名单，请联系管理员把你加入。" },
    [WORD_NOT_HERE] = { "I may not answer in this room. Write to me directly, or ask whoever runs me to add the room.",
                        "我不能在这个房间里回答。请直接给我发消息，或联系管理员添加这个房间。" },
    [WORD_NOT_TAKEN] = { "I cannot keep anything right now (the disk of this service is full, or broken), so I have not taken your "
                         "message. Please tell whoever runs me, and ask again later.",
                         "我现在无法保存任何内容（服务的磁盘已满或出错），因此没有接收你的消息。请告知管理员，稍后再问。" },
    [WORD_TRY_AGAIN] = { "That did not work just now. Please try again.", "刚才没有成功，请再试一次。" },
};

/* Value of the key at `key`, or NULL. */
static const char *value_of(const char *key, size_t n, const char *const (*pairs)[2])
{
    for (; (*pairs)[0]; pairs++)
        if (strlen((*pairs)[0]) == n && memcmp((*pairs)[0], key, n) == 0)
            return (*pairs)[1] ? (*pairs)[1] : "";
    return NULL;
}

char *words_fill(const char *template, const char *open, const char *close, const char *const (*pairs)[2])
{
    AUTO(str_clear) struct str out = STR_INIT(WORDS_MAX);
    for (const char *at = template; *at;) {
        const char *from = strstr(at, open);
        const char *key = from ? from + strlen(open) : NULL;
        const char *to = key ? strstr(key, close) : NULL;
        if (!to) {
            str_puts(&out, at);
            break;
        }
        const char *value = value_of(key, (size_t)(to - key), pairs);
        str_add(&out, at, (size_t)((value ? from : key) - at));
        if (value)
            str_puts(&out, value);
        at = value ? to + strlen(close) : key;
    }
    return str_take(&out);
}

char *words(enum word w, const char *language, const char *a, const char *b)
{
    const char *const pairs[][2] = { { "a", a }, { "b", b }, { NULL, NULL } };
    const bool zh = language && strcmp(language, "zh") == 0;
    return words_fill(zh ? table[w].zh : table[w].en, "{", "}", pairs);
}

char *words_n(enum word w, const char *language, int64_t a, int64_t b)
{
    char first[24], second[24];
    (void)snprintf(first, sizeof(first), "%" PRId64, a);
    (void)snprintf(second, sizeof(second), "%" PRId64, b);
    return words(w, language, first, second);
}

const char *words_language(const char *text)
{
    size_t han = 0, letters = 0;
    for (uint32_t c = utf8_next(&text); c; c = utf8_next(&text)) {
        if ((c >= 0x3040 && c <= 0x30ff) || (c >= 0xac00 && c <= 0xd7a3))
            return "en"; /* Japanese or Korean, whose signs may be Chinese */
        han += c >= 0x4e00 && c <= 0x9fff;
        letters += (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
    }
    return han > 0 && han * 4 >= letters ? "zh" : "en"; /* a column's Latin name in a Chinese question */
}
