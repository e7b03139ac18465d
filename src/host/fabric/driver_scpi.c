/* The SCPI driver of Polatis switches (scpi.h). No power, shutter or alarm commands are common to several
 * independent SCPI clients, so these functions are absent. */
#include "host/fabric/internal.h"
#include "host/fabric/session.h"

static size_t text_line_length(struct str bytes)
{
    const char *end = bytes.len ? memchr(bytes.data, '\n', bytes.len) : NULL;
    return end ? (size_t)(end - bytes.data) + 1 : 0;
}

static int garbled(struct phx_switch_error *error, const struct error *why)
{
    return switch_fail(error, PHX_SWITCH_GARBLED, "%.250s", why->text);
}

static int scpi_list(struct phx_switch *sw, struct phx_crossconnect *ret_pairs, uint32_t *ret_count,
                     struct phx_switch_error *error)
{
    struct str answer;
    struct error why;
    int rc = line_send(&sw->line, STR(":oxc:swit:conn:stat?\n"), error);
    if (rc == PHX_SWITCH_OK)
        rc = line_receive(&sw->line, text_line_length, &answer, error);
    if (rc == PHX_SWITCH_OK && scpi_read_pairs(answer, sw->a_ports, sw->b_ports, ret_pairs,
                                               PHX_SWITCH_PORTS_MAX, ret_count, &why) < 0)
        rc = garbled(error, &why);
    return rc;
}

static int scpi_change(struct phx_switch *sw, bool add, const struct phx_crossconnect *pairs, uint32_t count,
                       struct phx_switch_error *error)
{
    struct buf command BUF_CLEANUP = {0};
    struct str answer, text;
    struct error why;
    int64_t code;
    scpi_put_pairs(&command, add ? "add" : "sub", pairs, count);
    buf_add_str(&command, STR("*opc?\n:syst:err?\n"));
    int rc = line_send(&sw->line, buf_str(&command), error);
    if (rc == PHX_SWITCH_OK)
        rc = line_receive(&sw->line, text_line_length, &answer, error);
    if (rc < 0)
        return rc;
    if (!str_is(str_trim(answer), "1"))
        return switch_fail(error, PHX_SWITCH_GARBLED, "the switch answered *OPC? with \"" STR_FORMAT "\"",
                           STR_ARG(str_head_utf8(str_trim(answer), 60)));
    rc = line_receive(&sw->line, text_line_length, &answer, error);
    if (rc < 0)
        return rc;
    if (scpi_read_verdict(answer, &code, &text, &why) < 0)
        return garbled(error, &why);
    if (code < 0)
        return switch_fail(error, PHX_SWITCH_FAILED, "the switch refuses: %lld, " STR_FORMAT, (long long)code,
                           STR_ARG(str_head_utf8(text, 60)));
    return PHX_SWITCH_OK;
}

static const struct dialect scpi_dialect = {scpi_list, scpi_change};

static int scpi_begin(struct phx_switch *sw, const struct phx_switch_config *config,
                      struct phx_switch_error *error)
{
    struct str answer;
    struct error why;
    int rc = line_open(&sw->line, config->address, config->timeout_ms, error);
    if (rc == PHX_SWITCH_OK)
        rc = line_send(&sw->line, STR("*cls\n*idn?\n:oxc:swit:size?\n"), error);
    if (rc == PHX_SWITCH_OK)
        rc = line_receive(&sw->line, text_line_length, &answer, error);
    if (rc == PHX_SWITCH_OK && scpi_read_identity(answer, &sw->identity, &why) < 0)
        rc = garbled(error, &why);
    if (rc == PHX_SWITCH_OK)
        rc = line_receive(&sw->line, text_line_length, &answer, error);
    if (rc == PHX_SWITCH_OK && scpi_read_size(answer, &sw->a_ports, &sw->b_ports, &why) < 0)
        rc = garbled(error, &why);
    return rc == PHX_SWITCH_OK ? session_check_size(sw, config, error) : rc;
}

static int scpi_open(const struct phx_switch_config *config, struct phx_switch **ret_switch,
                     struct phx_switch_error *error)
{
    struct phx_switch *sw = mem_alloc(sizeof *sw);
    sw->dialect = &scpi_dialect;
    int rc = scpi_begin(sw, config, error);
    if (rc < 0)
        session_close(sw);
    else
        *ret_switch = sw;
    return rc;
}

const struct phx_switch_driver driver_scpi = {
    .abi = PHX_SWITCH_DRIVER_ABI,
    .name = "scpi",
    .open = scpi_open,
    .close = session_close,
    .identify = session_identify,
    .list = session_list,
    .add = session_add,
    .remove = session_remove,
    .ports = session_ports,
};
