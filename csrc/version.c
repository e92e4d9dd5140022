/* version.c - what the C floor can say of itself. */
#include "hs.h"

int hs_status_last(void) { return HS_INTERRUPTED; }
