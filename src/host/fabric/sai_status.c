/* Names of SAI's statuses, their meaning for a driver, and the messages of failed calls. */
#include <stdarg.h>
#include <stdio.h>

#include "host/fabric/line.h"
#include "host/fabric/sai_library.h"

enum { STATUS_NAME_MAX = 48 };

static const char *const status_names[] = {
    "SUCCESS",
    "FAILURE",
    "NOT_SUPPORTED",
    "NO_MEMORY",
    "INSUFFICIENT_RESOURCES",
    "INVALID_PARAMETER",
    "ITEM_ALREADY_EXISTS",
    "ITEM_NOT_FOUND",
    "BUFFER_OVERFLOW",
    "INVALID_PORT_NUMBER",
    "INVALID_PORT_MEMBER",
    "INVALID_VLAN_ID",
    "UNINITIALIZED",
    "TABLE_FULL",
    "MANDATORY_ATTRIBUTE_MISSING",
    "NOT_IMPLEMENTED",
    "ADDR_NOT_FOUND",
    "OBJECT_IN_USE",
    "INVALID_OBJECT_TYPE",
    "INVALID_OBJECT_ID",
    "INVALID_NV_STORAGE",
    "NV_STORAGE_FULL",
    "SW_UPGRADE_VERSION_MISMATCH",
    "NOT_EXECUTED",
    "STAGE_MISMATCH",
};
static const char *const range_names[] = {
    "INVALID_ATTRIBUTE", "INVALID_ATTR_VALUE", "ATTR_NOT_IMPLEMENTED",
    "UNKNOWN_ATTRIBUTE", "ATTR_NOT_SUPPORTED",
};

static void name_status(sai_status status, char name[STATUS_NAME_MAX])
{
    uint32_t number = 0u - (uint32_t)status;
    if (number < sizeof status_names / sizeof *status_names)
        snprintf(name, STATUS_NAME_MAX, "SAI_STATUS_%s", status_names[number]);
    else if (number >= SAI_BASE_INVALID_ATTRIBUTE && number < SAI_BASE_END)
        snprintf(name, STATUS_NAME_MAX, "SAI_STATUS_%s_%u",
                 range_names[number / SAI_BASE_INVALID_ATTRIBUTE - 1], number & 0xffff);
    else
        snprintf(name, STATUS_NAME_MAX, "no status that SAI has");
}

enum phx_switch_status sai_meaning(sai_status status)
{
    switch (status) {
    case SAI_OK:
        return PHX_SWITCH_OK;
    case SAI_ALREADY_EXISTS:
    case SAI_IN_USE:
        return PHX_SWITCH_BUSY;
    case SAI_NOT_FOUND:
    case SAI_INVALID_OBJECT:
        return PHX_SWITCH_ABSENT;
    case SAI_INVALID_PARAMETER:
    case SAI_INVALID_PORT:
        return PHX_SWITCH_INVALID;
    case SAI_NOT_SUPPORTED:
    case SAI_NOT_IMPLEMENTED:
        return PHX_SWITCH_UNSUPPORTED;
    case SAI_UNINITIALIZED:
        return PHX_SWITCH_LOST;
    default:
        break;
    }
    if (status <= -SAI_BASE_NOT_IMPLEMENTED && status > -SAI_BASE_END)
        return PHX_SWITCH_UNSUPPORTED;
    return status > 0 ? PHX_SWITCH_GARBLED : PHX_SWITCH_FAILED;
}

int sai_fail(struct phx_switch_error *error, const struct sai_device *device, const char *call,
             const char *what, sai_status status)
{
    char name[STATUS_NAME_MAX];
    name_status(status, name);
    return switch_fail(error, sai_meaning(status), "%.60s: %s(): %.60s%s%s (%d)", sai_file(device), call,
                       what, what[0] ? ": " : "", name, status);
}

int sai_garbled(struct phx_switch_error *error, const struct sai_device *device, const char *call,
                const char *format, ...)
{
    char text[128];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return switch_fail(error, PHX_SWITCH_GARBLED, "%.60s: %s(): %s", sai_file(device), call, text);
}
