/* report_costs.h - what chips did and what failures cost: `phalanx report` without a CODE.
 *
 * The controller makes the document (GET /report, docs/report.md); here it becomes a table, CSV or a page. */
#ifndef PHX_CMD_REPORT_COSTS_H
#define PHX_CMD_REPORT_COSTS_H

#include "base/str.h"
#include "doc/doc.h"

/* Whether the command line, without the command's name, asks for this report, and does not name a fault. */
bool report_asks_costs(int argc, char **argv);
/* Fetches the report and prints it. Returns the exit status. */
int report_costs(int argc, char **argv);

/* The usage of `phalanx report CODE`, which --help prints, too. */
extern const char report_fault_usage[];
/* Sum of an object of chip-seconds by owner (NULL: 0). */
double report_sum(const struct doc *owners);
/* Appends the bounds of a size's MTTF in hours, "1.20 to 30.00" or "over 1.20"; nothing where it has none. */
void report_put_bounds(struct buf *out, const struct doc *size);
/* Appends the report as one self-contained HTML page with SVG figures. */
void report_put_html(const struct doc *report, struct buf *out);

#endif
