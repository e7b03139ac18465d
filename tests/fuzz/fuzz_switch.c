/* Any bytes to the readers of optical switches' answers, to the emulated switches, to lists and scripts: no
 * crash; a state that is read is a partial permutation; an emulated switch keeps one. The first byte chooses
 * the reader. */
#include <stdint.h>
#include <string.h>

#include "base/check.h"
#include "host/fabric/scpi.h"
#include "host/fabric/switches.h"
#include "host/fabric/tl1.h"
#include "sim/fabric/ocs_script.h"
#include "sim/fabric/ocs_session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_scpi(struct str text)
{
    struct phx_crossconnect pairs[64];
    struct phx_switch_identity identity;
    uint32_t a = 0, b = 0, count = 0;
    int64_t code;
    struct str message;
    scpi_read_size(text, &a, &b, NULL);
    scpi_read_identity(text, &identity, NULL);
    scpi_read_verdict(text, &code, &message, NULL);
    if (scpi_read_pairs(text, 64, 64, pairs, 64, &count, NULL) < 0)
        return;
    CHECK(count <= 64);
    for (uint32_t i = 1; i < count; i++)
        CHECK(pairs[i - 1].a < pairs[i].a && pairs[i].b > 64);
}

static void read_tl1(struct str text)
{
    for (size_t length; (length = tl1_message_length(text)) > 0;) {
        struct tl1_answer answer;
        struct str line;
        if (tl1_read_answer((struct str){text.data, length}, &answer, NULL) == 0)
            while (tl1_next_line(&answer.lines, &line)) {
                struct phx_crossconnect pair;
                struct phx_switch_alarm alarm;
                uint32_t port = 1;
                int32_t mdbm;
                bool flag;
                if (tl1_read_pair(line, &pair))
                    CHECK(pair.a >= 1 && pair.b <= PHX_SWITCH_PORTS_MAX);
                if (tl1_read_power(line, &port, &mdbm) || tl1_read_shutter(line, &port, &flag) ||
                    tl1_read_alarm(line, &alarm, &flag))
                    CHECK(port <= PHX_SWITCH_PORTS_MAX);
            }
        text = (struct str){text.data + length, text.len - length};
    }
}

static void read_list(struct str text)
{
    struct switches *switches = mem_alloc(sizeof *switches);
    if (switches_parse(text, switches, NULL) == 0)
        CHECK(switches->listed >= 1 && switches->listed <= POD_SWITCHES);
    mem_free(switches);
}

static void serve(struct str text, enum ocs_protocol protocol)
{
    static const struct ocs_settings settings = {.a_ports = 8, .b_ports = 8, .tuning_ns = 5};
    struct ocs ocs;
    struct ocs_session session;
    struct buf out BUF_CLEANUP = {0};
    ocs_init(&ocs, &settings);
    ocs_session_init(&session, protocol);
    ocs_session_take(&session, text);
    int64_t now_ns = 0;
    while (now_ns != OCS_NEVER)
        now_ns = ocs_session_next(&session, &ocs, now_ns, &out);
    for (uint32_t port = 1; port <= 16; port++)
        CHECK(!ocs_peer(&ocs, port) || ocs_peer(&ocs, ocs_peer(&ocs, port)) == port);
    ocs_session_done(&session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ocs_script script = {0};
    if (!size)
        return 0;
    struct str text = {(const char *)data + 1, size - 1};
    switch (data[0] % 6) {
    case 0:
        read_scpi(text);
        break;
    case 1:
        read_tl1(text);
        break;
    case 2:
        serve(text, OCS_SCPI);
        break;
    case 3:
        serve(text, OCS_TL1);
        break;
    case 4:
        read_list(text);
        break;
    default:
        if (ocs_script_parse(text, &script, NULL) == 0)
            ocs_script_done(&script);
    }
    return 0;
}
