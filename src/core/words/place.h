/* place.h - a place: a part of a cluster that can fail, be repaired, or take orders. */
#ifndef PHX_CORE_WORDS_PLACE_H
#define PHX_CORE_WORDS_PLACE_H

#include <stdint.h>

enum place_kind { PLACE_NOWHERE, PLACE_MACHINE, PLACE_CUBE, PLACE_SWITCH, PLACE_LINK };
struct place {
    enum place_kind kind;
    uint32_t
        id; /* index into the cluster's machines, cubes or switches (model/model.h); of a link: its end */
};

#endif
