#include "flow/host/gate.h"

#include <stdio.h>

#include "flow/host/host.h"

int flow_head_make_token(const char *folder, char *ret_path, size_t len, struct error *error)
{
    int needed = snprintf(ret_path, len, "%s/%s", folder, FLOW_TOKEN_FILE);
    if (needed < 0 || (size_t)needed >= len)
        return error_set(error, ERROR_INVALID, "the folder's name %s is too long", folder);
    return flow_token_make(ret_path, error);
}

int gate_open(struct gate *gate, const char *listen, const char *token_file, bool insecure,
              struct error *error)
{
    int rc = flow_token_find(token_file, NULL, &gate->token, error);
    if (rc < 0)
        return rc;
    if (!gate->token.set && !insecure && !str_starts(str_from(listen), STR("unix:")))
        return error_set(error, ERROR_DENIED,
                         "whoever reaches %s could use the devices: give a token (--token-file FILE or "
                         "PHX_FLOW_TOKEN, to workers and clients too), or say --insecure",
                         listen);
    return 0;
}

void gate_done(struct gate *gate)
{
    vec_done(&gate->refused);
    vec_done(&gate->strangers);
}

void gate_closed(struct gate *gate, uint64_t peer)
{
    for (size_t i = 0; i < gate->strangers.len; i++)
        if (gate->strangers.items[i].peer == peer) {
            vec_remove(&gate->strangers, i);
            return;
        }
}

void gate_opened(struct gate *gate, struct loop *loop, uint64_t peer)
{
    if (gate->strangers.len == GATE_STRANGERS_MAX) {
        loop_close(loop, gate->strangers.items[0].peer);
        vec_remove(&gate->strangers, 0);
    }
    vec_push(&gate->strangers, ((struct gate_stranger){.peer = peer}));
}

static bool gate_has_refused(const struct gate *gate, uint64_t peer)
{
    for (size_t i = 0; i < gate->refused.len; i++)
        if (gate->refused.items[i] == peer)
            return true;
    return false;
}

bool gate_passes(struct gate *gate, struct loop *loop, uint64_t peer, struct flow_entry *entry,
                 struct str *tail)
{
    if (gate_has_refused(gate, peer))
        return false;
    bool is_hello = entry->kind == ENTRY_HELLO_WORKER || entry->kind == ENTRY_HELLO_CLIENT ||
                    entry->kind == ENTRY_HELLO_WATCH;
    if (is_hello)
        gate_closed(gate, peer); /* from here on the peer is admitted or refused */
    if (!is_hello || flow_token_take(&gate->token, entry, tail))
        return true;
    if (gate->refused.len == GATE_REFUSED_MAX) {
        loop_close(loop, peer);
        return false;
    }
    struct flow_entry answer = {.kind = ENTRY_WELCOME, .flags = ENTRY_IS_FAILED};
    loop_send(loop, peer, &answer, (struct str){0}, NULL);
    vec_push(&gate->refused, peer); /* disconnected at the next tick, when the answer has been sent */
    return false;
}

void gate_tick(struct gate *gate, struct loop *loop)
{
    for (size_t i = 0; i < gate->refused.len; i++)
        loop_close(loop, gate->refused.items[i]);
    vec_clear(&gate->refused);
    for (size_t i = 0; i < gate->strangers.len; i++)
        gate->strangers.items[i].ticks++;
    while (gate->strangers.len > 0 && gate->strangers.items[0].ticks > GATE_STRANGER_S) {
        loop_close(loop, gate->strangers.items[0].peer);
        vec_remove(&gate->strangers, 0);
    }
}
