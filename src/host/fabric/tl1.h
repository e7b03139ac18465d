/* tl1.h - the TL1 dialect of Polatis optical switches: writes commands and reads answers, as text.
 *
 * A command ends with ';' and carries a correlation tag (ctag), which its answer repeats:
 *
 *     ACT-USER::admin:6::secret;             logs in, if the switch requires it
 *     ENT-PATCH::1&2,65&66:7:;               joins 1 with 65, 2 with 66; refused if a port is joined
 *     DLT-PATCH::1&2:8:;                     parts ports
 *     RTRV-PATCH:::9:;                       lines "1,65"
 *     RTRV-PORT-POWER::1&&128:10:;           lines "65:-3.42", in dBm
 *     RTRV-PORT-SHUTTER::1&&128:11:;         lines "65:OPEN" and "65:CLOSED"
 *     OPR-PORT-SHUTTER::65:12:;              closes; RLS-PORT-SHUTTER opens
 *     RTRV-ALM-ALL:::13:;                    lines "65:MN,LOS,NSA"
 *
 * An answer is
 *
 *     <cr><lf><lf>   SID YYYY-MM-DD HH:MM:SS<cr><lf>M  CTAG COMPLD|DENY|PRTL|DELAY<cr><lf>
 *        "line"<cr><lf> ... ;
 *
 * A refusal has, instead of lines, a code of four letters and a text in comment marks. '>' instead of ';'
 * means that more of the answer follows. Messages that a switch sends by itself begin with "A ", "* ", "**"
 * or "*C" instead of "M ", and may arrive between any two answers.
 *
 * Pure functions. Answers are untrusted: readers return ERROR_CORRUPT for an answer that does not follow the
 * grammar.
 */
#ifndef PHX_HOST_FABRIC_TL1_H
#define PHX_HOST_FABRIC_TL1_H

#include "host/fabric/scpi.h"

/* Appends "VERB::PORTS:CTAG:;"; ports are the A sides, and the B sides too if `both`. */
void tl1_put_pairs(struct buf *out, const char *verb, const struct phx_crossconnect *pairs, uint32_t count,
                   bool both, uint32_t ctag);

enum tl1_verdict { TL1_COMPLETED, TL1_DENIED, TL1_PARTIAL, TL1_DELAYED };

struct tl1_answer {
    bool autonomous; /* a message that the switch sent by itself; ctag and verdict have no meaning */
    bool continued;  /* more of the answer follows */
    uint32_t ctag;
    enum tl1_verdict verdict;
    char code[5];       /* code of a refusal, such as "SROF"; else "" */
    struct str comment; /* text of a refusal; else empty */
    struct str lines;   /* the part with the quoted lines, for tl1_next_line() */
};

/* Returns the length of the first message in `bytes`, including its ';' or '>', or 0 if the message is
 * incomplete. */
size_t tl1_message_length(struct str bytes);
/* Reads one message; its strings point into `message`. */
int tl1_read_answer(struct str message, struct tl1_answer *ret_answer, struct error *error);
/* Takes the next quoted line off *lines. Returns false if there is none. */
bool tl1_next_line(struct str *lines, struct str *ret_line);

/* Read one line. Return false if the line has another form. */
bool tl1_read_pair(struct str line, struct phx_crossconnect *ret_pair);                    /* 1,65 */
bool tl1_read_power(struct str line, uint32_t *ret_port, int32_t *ret_mdbm);               /* 65:-3.42 */
bool tl1_read_shutter(struct str line, uint32_t *ret_port, bool *ret_closed);              /* 65:CLOSED */
bool tl1_read_alarm(struct str line, struct phx_switch_alarm *ret_alarm, bool *ret_clear); /* 65:MN,LOS,NSA */

#endif
