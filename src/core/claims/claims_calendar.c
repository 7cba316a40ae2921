/* claims_calendar.c - days, months and dates as people and programs of many countries write them. */
#include <ctype.h>
#include <strings.h>
#include "claims_private.h"

enum { NAME_BYTES = 24 };

/* Folded. */
static const struct calendar_name names[] = {
#define W(word, day)     \
    {                    \
        word, day, -1, 0 \
    }
#define M(word, month)     \
    {                      \
        word, -1, month, 0 \
    }
    W("monday", 0),
    W("tuesday", 1),
    W("wednesday", 2),
    W("thursday", 3),
    W("friday", 4),
    W("saturday", 5),
    W("sunday", 6),
    W("mondays", 0),
    W("tuesdays", 1),
    W("wednesdays", 2),
    W("thursdays", 3),
    W("fridays", 4),
    W("saturdays", 5),
    W("sundays", 6),
    { "mon", 0, -1, CALENDAR_SHORT },
    { "tue", 1, -1, CALENDAR_SHORT },
    { "tues", 1, -1, CALENDAR_SHORT },
    { "wed", 2, -1, CALENDAR_SHORT },
    { "thu", 3, -1, CALENDAR_SHORT },
    { "thur", 3, -1, CALENDAR_SHORT },
    { "thurs", 3, -1, CALENDAR_SHORT },
    { "fri", 4, -1, CALENDAR_SHORT },
    { "sat", 5, -1, CALENDAR_SHORT },
    { "sun", 6, -1, CALENDAR_SHORT },
    W("montag", 0),
    W("dienstag", 1),
    W("mittwoch", 2),
    W("donnerstag", 3),
    W("freitag", 4),
    W("samstag", 5),
    W("sonnabend", 5),
    W("sonntag", 6),
    W("lundi", 0),
    W("mardi", 1),
    W("mercredi", 2),
    W("jeudi", 3),
    W("vendredi", 4),
    W("samedi", 5),
    W("dimanche", 6),
    W("lunes", 0),
    W("martes", 1),
    W("miércoles", 2),
    W("jueves", 3),
    W("viernes", 4),
    W("sábado", 5),
    { "domingo", 6, -1, 0 },
    W("понедельник", 0),
    W("вторник", 1),
    W("среда", 2),
    W("среду", 2),
    W("четверг", 3),
    W("пятница", 4),
    W("пятницу", 4),
    W("суббота", 5),
    W("субботу", 5),
    W("воскресенье", 6),
    M("january", 0),
    M("february", 1),
    { "march", -1, 2, CALENDAR_MODAL },
    M("april", 3),
    { "may", -1, 4, CALENDAR_MODAL },
    M("june", 5),
    M("july", 6),
    M("august", 7),
    M("september", 8),
    M("october", 9),
    M("november", 10),
    M("december", 11),
    { "jan", -1, 0, CALENDAR_SHORT },
    { "feb", -1, 1, CALENDAR_SHORT },
    { "mar", -1, 2, CALENDAR_SHORT },
    { "apr", -1, 3, CALENDAR_SHORT },
    { "jun", -1, 5, CALENDAR_SHORT },
    { "jul", -1, 6, CALENDAR_SHORT },
    { "aug", -1, 7, CALENDAR_SHORT },
    { "sep", -1, 8, CALENDAR_SHORT },
    { "sept", -1, 8, CALENDAR_SHORT },
    { "oct", -1, 9, CALENDAR_SHORT },
    { "nov", -1, 10, CALENDAR_SHORT },
    { "dec", -1, 11, CALENDAR_SHORT },
    M("januar", 0),
    M("februar", 1),
    M("märz", 2),
    { "mai", -1, 4, CALENDAR_NO_CLAIM },
    M("juni", 5),
    M("juli", 6),
    M("oktober", 9),
    M("dezember", 11),
    M("janvier", 0),
    M("février", 1),
    { "mars", -1, 2, CALENDAR_NO_CLAIM },
    M("avril", 3),
    M("juin", 5),
    M("juillet", 6),
    M("août", 7),
    M("septembre", 8),
    M("octobre", 9),
    M("novembre", 10),
    M("décembre", 11),
    M("enero", 0),
    M("febrero", 1),
    M("marzo", 2),
    M("abril", 3),
    { "mayo", -1, 4, CALENDAR_NO_CLAIM },
    M("junio", 5),
    M("julio", 6),
    M("agosto", 7),
    M("septiembre", 8),
    M("octubre", 9),
    M("noviembre", 10),
    M("diciembre", 11),
    M("января", 0),
    M("февраля", 1),
    M("марта", 2),
    M("апреля", 3),
    M("мая", 4),
    M("июня", 5),
    M("июля", 6),
    M("августа", 7),
    M("сентября", 8),
    M("октября", 9),
    M("ноября", 10),
    M("декабря", 11),
    M("январь", 0),
    M("январе", 0),
    M("феврале", 1),
    M("марте", 2),
    M("апреле", 3),
    M("июне", 5),
    M("июле", 6),
    M("августе", 7),
    M("сентябре", 8),
    M("октябре", 9),
    M("ноябре", 10),
    M("декабре", 11),
    W("lunedì", 0),
    W("martedì", 1),
    W("mercoledì", 2),
    W("giovedì", 3),
    W("venerdì", 4),
    W("sabato", 5),
    W("domenica", 6),
    W("maandag", 0),
    W("dinsdag", 1),
    W("woensdag", 2),
    W("donderdag", 3),
    W("vrijdag", 4),
    W("zaterdag", 5),
    W("zondag", 6),
    W("poniedziałek", 0),
    W("wtorek", 1),
    W("środa", 2),
    W("środę", 2),
    W("czwartek", 3),
    W("piątek", 4),
    W("sobota", 5),
    W("sobotę", 5),
    W("niedziela", 6),
    W("niedzielę", 6),
    M("gennaio", 0),
    M("febbraio", 1),
    M("aprile", 3),
    M("maggio", 4),
    M("giugno", 5),
    M("luglio", 6),
    M("settembre", 8),
    M("ottobre", 9),
    M("dicembre", 11),
    M("janeiro", 0),
    M("fevereiro", 1),
    M("março", 2),
    M("maio", 4),
    M("junho", 5),
    M("julho", 6),
    M("setembro", 8),
    M("outubro", 9),
    M("novembro", 10),
    M("dezembro", 11),
    M("januari", 0),
    M("februari", 1),
    M("maart", 2),
    { "mei", -1, 4, CALENDAR_NO_CLAIM },
    M("augustus", 7),
    M("styczeń", 0),
    M("stycznia", 0),
    M("luty", 1),
    M("lutego", 1),
    M("marzec", 2),
    { "marca", -1, 2, CALENDAR_NO_CLAIM },
    M("kwiecień", 3),
    M("kwietnia", 3),
    M("maj", 4),
    { "maja", -1, 4, CALENDAR_NO_CLAIM },
    M("czerwiec", 5),
    M("czerwca", 5),
    M("lipiec", 6),
    M("lipca", 6),
    M("sierpień", 7),
    M("sierpnia", 7),
    M("wrzesień", 8),
    M("września", 8),
    M("październik", 9),
    M("października", 9),
    M("listopad", 10),
    M("listopada", 10),
    M("grudzień", 11),
    M("grudnia", 11),
#undef W
#undef M
};

/* ---- words ---- */

/* Bytes of the word at `at`: letters of any alphabet; CJK has no words here. */
size_t calendar_word(const char *at)
{
    const char *end = at;
    for (const char *next = at; *next;) {
        const uint32_t cp = utf8_next(&next);
        if (!(cp < 0x80 ? isalpha((int)cp) : cp >= 0xc0 && cp < 0x2000))
            break;
        end = next;
    }
    return (size_t)(end - at);
}

static const struct calendar_name *find_name(const char *word, size_t n)
{
    for (size_t i = 0; i < countof(names); i++)
        if (strncasecmp(names[i].word, word, n) == 0 && names[i].word[n] == '\0')
            return &names[i];
    return NULL;
}

static bool is_ascii(const char *at, size_t n)
{
    while (n && (unsigned char)at[n - 1] < 0x80)
        n--;
    return n == 0;
}

const struct calendar_name *calendar_name_at(const char *at, size_t n)
{
    if (n < 3 || n > NAME_BYTES)
        return NULL;
    if (is_ascii(at, n))
        return find_name(at, n);
    autofree char *word = xstrndup(at, n), *folded = utf8_fold(word);
    return find_name(folded, strlen(folded));
}

/* "周五", "星期一", "日曜", "월요일": bytes, 0: none. */
size_t calendar_cjk_weekday(const char *begin, const char *at, int *day)
{
    static const char *const prefixes[] = { "星期", "礼拜", "禮拜", "周", "週" };
    static const char *const zh[] = { "一", "二", "三", "四", "五", "六", "日", "天" };
    static const char *const ja[] = { "月曜", "火曜", "水曜", "木曜", "金曜", "土曜", "日曜" };
    static const char *const ko[] = { "월요일", "화요일", "수요일", "목요일", "금요일", "토요일", "일요일" };
    for (size_t i = 0; i < countof(ja); i++)
        if (strncmp(at, ja[i], strlen(ja[i])) == 0 || strncmp(at, ko[i], strlen(ko[i])) == 0) {
            *day = (int)i;
            return strlen(strncmp(at, ja[i], strlen(ja[i])) == 0 ? ja[i] : ko[i]);
        }
    for (size_t p = 0; p < countof(prefixes); p++) {
        const size_t n = strlen(prefixes[p]);
        if (strncmp(at, prefixes[p], n) != 0)
            continue;
        if (p >= 3 && at - begin >= 3 && (strncmp(at - 3, "一", 3) == 0 || strncmp(at - 3, "两", 3) == 0))
            return 0; /* "一周三次": three times a week */
        for (size_t i = 0; i < countof(zh); i++)
            if (strncmp(at + n, zh[i], strlen(zh[i])) == 0 && strncmp(at + n + 3, "均", 3) != 0) {
                *day = i < 6 ? (int)i : 6;
                return n + 3;
            }
    }
    return 0;
}

/* "3月", "十二月": bytes, 0: none. *month from 0. */
size_t calendar_cjk_month(const char *begin, const char *at, int *month)
{
    static const char *const zh[] = { "十二月", "十一月", "十月", "九月", "八月", "七月",
                                      "六月",   "五月",   "四月", "三月", "二月", "一月" };
    for (size_t i = 0; i < countof(zh); i++)
        if (strncmp(at, zh[i], strlen(zh[i])) == 0) {
            *month = 11 - (int)i;
            return strlen(zh[i]);
        }
    if (!isdigit((unsigned char)*at) || (at > begin && (isdigit((unsigned char)at[-1]) || at[-1] == '.')))
        return 0;
    const size_t n = strspn(at, "0123456789");
    const long m = n <= 2 ? strtol(at, NULL, 10) : 0;
    if (m < 1 || m > CALENDAR_MONTHS || (strncmp(at + n, "月", 3) != 0 && strncmp(at + n, "월", 3) != 0))
        return 0;
    *month = (int)m - 1;
    return n + 3;
}

/* ---- dates ---- */

static void date_add(struct calendar_date *d, long year, long month, long day)
{
    static const long most[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    if (month < 1 || month > CALENDAR_MONTHS || day < 1 || day > most[month - 1] ||
        (year != 0 && (year < 1000 || year > 2999)))
        return;
    d->days[d->n++] = (int32_t)(year * 10000 + month * 100 + day);
}

/* Up to `most` digits. */
static size_t digits(const char *at, size_t most, long *value)
{
    const size_t n = strspn(at, "0123456789");
    *value = n && n <= most ? strtol(at, NULL, 10) : -1;
    return n && n <= most ? n : 0;
}

static size_t separator(const char *at)
{
    static const char *const marks[] = { "-", "/", ".", "年", "월", "년" };
    for (size_t i = 0; i < countof(marks); i++)
        if (strncmp(at, marks[i], strlen(marks[i])) == 0)
            return strlen(marks[i]);
    return 0;
}

/* "2024-03-15", "2024/3/15", "2024年3月15日", "20240315", "15.03.2024", "03/15/2024" */
static bool read_numeric(struct calendar_date *d, const char *at)
{
    long a = 0, b = 0, c = 0;
    const size_t n = digits(at, 8, &a), sep = n ? separator(at + n) : 0;
    d->n = 0;
    if (n == 8 && a > 18000000) {
        d->end = at + n;
        date_add(d, a / 10000, a / 100 % 100, a % 100);
        return d->n > 0;
    }
    const char *second = at + n + sep;
    const size_t k = sep && (n == 4 || n <= 2) ? digits(second, 2, &b) : 0;
    const size_t sep2 = !k ? 0
                        : strncmp(second + k, "月", 3) == 0 || strncmp(second + k, "월", 3) == 0
                            ? 3
                            : separator(second + k);
    const char *third = second + k + sep2 + (sep > 1 && second[k + sep2] == ' ');
    const size_t m = sep2 ? digits(third, n == 4 ? 2 : 4, &c) : 0;
    if (!m || (n != 4 && m != 4) || (sep == 1 && memcmp(at + n, second + k, 1) != 0))
        return false;
    d->end = third + m;
    if (sep > 1 && (strncmp(d->end, "日", 3) == 0 || strncmp(d->end, "일", 3) == 0))
        d->end += 3;
    if (n == 4)
        date_add(d, a, b, c);
    else
        date_add(d, c, b, a);
    if (n != 4 && a != b)
        date_add(d, c, a, b);
    return d->n > 0;
}

static const char *skip_all(const char *at, const char *set)
{
    return at + strspn(at, set);
}

static const char *skip_ordinal(const char *at)
{
    static const char *const ends[] = { "st", "nd", "rd", "th", "er", "º", "." };
    for (size_t i = 0; i < countof(ends); i++)
        if (strncmp(at, ends[i], strlen(ends[i])) == 0)
            return at + strlen(ends[i]);
    return at;
}

static const char *skip_of(const char *at)
{
    at = skip_all(at, " -");
    return strncmp(at, "of ", 3) == 0 || strncmp(at, "de ", 3) == 0 ? at + 3 : at;
}

static long read_month(const char *at, const char **end)
{
    const size_t n = calendar_word(at);
    const struct calendar_name *name = calendar_name_at(at, n);
    *end = at + n + (at[n] == '.');
    return name && name->month >= 0 ? name->month + 1 : 0;
}

static long read_year(const char *at, const char **end)
{
    long year = 0;
    at = skip_of(skip_all(at, ","));
    const size_t n = digits(at, 4, &year);
    if (n != 4 || year < 1000)
        return 0;
    *end = at + n;
    return year;
}

/* "15 March 2024", "15. März", "15-Mar-2024" */
static bool read_day_first(struct calendar_date *d, const char *at)
{
    long day = 0;
    const char *end = NULL;
    const size_t n = digits(at, 2, &day);
    if (!n)
        return false;
    const long month = read_month(skip_of(skip_ordinal(at + n)), &end);
    if (!month)
        return false;
    d->n = 0;
    d->end = end;
    const long year = read_year(end, &d->end);
    date_add(d, year, month, day);
    return d->n > 0;
}

/* "March 15, 2024", "Mar 15" */
static bool read_month_first(struct calendar_date *d, const char *at)
{
    long day = 0;
    const char *end = NULL;
    const long month = read_month(at, &end);
    const char *number = month ? skip_all(end, " -") : at;
    const size_t n = month ? digits(number, 2, &day) : 0;
    if (!n || number == end)
        return false;
    d->n = 0;
    d->end = skip_ordinal(number + n);
    d->end -= d->end[-1] == '.';
    const long year = read_year(d->end, &d->end);
    date_add(d, year, month, day);
    return d->n > 0;
}

/* "3月15日" */
static bool read_cjk(struct calendar_date *d, const char *begin, const char *at)
{
    int month = 0;
    long day = 0;
    const size_t n = calendar_cjk_month(begin, at, &month), k = n ? digits(at + n, 2, &day) : 0;
    if (!k || (strncmp(at + n + k, "日", 3) != 0 && strncmp(at + n + k, "号", 3) != 0))
        return false;
    d->n = 0;
    d->end = at + n + k + 3;
    date_add(d, 0, month + 1, day);
    return d->n > 0;
}

bool calendar_date(struct calendar_date *d, const char *begin, const char *at)
{
    *d = (struct calendar_date){ .end = at };
    if (at > begin && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
        return false;
    if (isdigit((unsigned char)*at))
        return read_numeric(d, at) || read_day_first(d, at) || read_cjk(d, begin, at);
    return read_month_first(d, at);
}

bool calendar_columns(struct calendar_date *d, const char *begin, const char *at)
{
    long year = 0, month = 0, day = 0;
    if ((at > begin && isalnum((unsigned char)at[-1])) || digits(at, 4, &year) != 4)
        return false;
    const char *second = skip_all(at + 4, " \t,|");
    const size_t n = second > at + 4 ? digits(second, 2, &month) : 0;
    const char *third = skip_all(second + n, " \t,|");
    const size_t k = n && third > second + n ? digits(third, 2, &day) : 0;
    d->n = 0;
    d->end = third + k;
    if (k)
        date_add(d, year, month, day);
    return d->n > 0;
}

/* Zeller, Monday 0. */
int calendar_weekday(int32_t ymd)
{
    int y = ymd / 10000, m = ymd / 100 % 100;
    const int d = ymd % 100;
    if (m < 3) {
        m += 12;
        y--;
    }
    return (d + 13 * (m + 1) / 5 + y % 100 + y % 100 / 4 + y / 400 + 5 * (y / 100) + 5) % 7;
}
