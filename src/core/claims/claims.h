/* claims.h - what an answer claims, held against what was really put out. Pure; fuzzed.
 *
 * After failures models invent the result. A number in the prose counts as supported when some output, profile or question
 * of the conversation shows a value that rounds to it at the precision at which it is written. The reading of evidence is
 * generous, that of claims is not: every number that can be read out of a text supports itself. */
#ifndef CLAIMS_H
#define CLAIMS_H
#include "base.h"
#include "str.h"

/* What may be said. All zero: nothing. */
struct evidence {
    double *at; /* values, without their signs */
    size_t n, cap;
    bool sorted;
    struct str words, programs; /* what was shown and asked; programs that worked. Folded, for comparing */
    int32_t *days;              /* 20240315; 315: a day of no year */
    size_t day_n, day_cap;
    unsigned weekdays, months;           /* bits: named, or of a day that is shown. Monday 0, January 0 */
    bool counts_weekdays, counts_months; /* a number may stand for one */
};
void evidence_clear(struct evidence *e);
/* A text that was shown, or a person's. All its numbers, in each way they can be read: 1,234 is 1234, 1.234, and 1 beside 234; days,
 * names of days and months, words. */
void evidence_add(struct evidence *e, const char *text);
/* A program that worked: its numbers are parameters, its names exist. Comments show nothing, nor does what it only prints as it stands:
 * print("The mean is 42"), or x = 42 where x is shown and used for nothing else. */
void evidence_add_program(struct evidence *e, const char *code);
/* What a program put out, less what it so states itself. */
void evidence_add_output(struct evidence *e, const char *code, const char *output);
void evidence_add_numbers(struct evidence *e, const char *text);
void evidence_add_names(struct evidence *e, const char *code); /* only that what it names exists */
/* Takes out what a text names, so that a number once marked as unsupported does not support itself later. */
void evidence_remove(struct evidence *e, const char *text);

enum { CLAIMS_MAX = 12 }; /* more would only repeat the point */
struct claims {
    char *at[CLAIMS_MAX]; /* as written, each once */
    size_t n;
};
void claims_clear(struct claims *c);
char *claims_join(const struct claims *c); /* "25, 30.5"; caller frees */

void claims_add(struct claims *c, const char *at, size_t n);
void claims_add_all(struct claims *c, const struct claims *more);

/* Numbers of the prose that nothing supports, in digits or words. Left out: whole numbers up to 12 and 100, list markers, programs, names
 * with digits in them, addresses; a value of the evidence in another unit; what claims_derived() has. Sorts the evidence. */
void claims_numbers(struct claims *out, const char *markdown, struct evidence *e);
/* Numbers that no output shows either, but that follow from numbers of the same paragraph where a sentence speaks of a difference, a sum or
 * a share, or are the rest of a shown percentage: right if those are. */
void claims_derived(struct claims *out, const char *markdown, struct evidence *e);
/* Weekdays, months and dates that nothing shows: no name, no date that falls on them, no number that a program counts them by. */
void claims_days(struct claims *out, const char *markdown, struct evidence *e);
/* Names given as a result, or as a column or value ("is Southampton", "the column `Fares`"), that stand nowhere else. */
void claims_names(struct claims *out, const char *markdown, struct evidence *e);
/* The question asks how many there are, and the answer gives no whole number. *part: the first that is not whole, NULL: none; caller
 * frees. Questions for means, shares, and of what has parts (hours, tons) are not such. */
bool claims_miscounted(const char *question, const char *markdown, char **part);
/* The question asks how many there are, and no whole number of the answer, however small, is in the evidence. Sorts it. */
void claims_uncounted(struct claims *out, const char *question, const char *markdown, struct evidence *e);
/* A sentence names the highest (lowest) of a list that the outputs show, and there it is another, or gives one of the list the number of
 * another: the right number, as it stands there; caller frees. NULL: nothing speaks against it. A list is two lines or more of a label and
 * one number. */
char *claims_misread(const char *markdown, const char *outputs);
/* The question, in English, asks for a mean, a sum and the like, and no word of it is what one of the columns is called: the number may
 * be of something else. */
bool claims_of_other(const char *question, const char *const *columns, size_t n);
/* A sentence says that there is a chart. */
bool claims_chart(const char *markdown);
/* Files that a sentence says were saved, attached and so on, unless exists() knows them. */
void claims_files(struct claims *out, const char *markdown, bool (*exists)(const void *ud, const char *name),
                  const void *ud);
#endif
