/* own_bulk.h - bulk.c, read for its static functions: its public ones get names of their own. */
#include "law/bulk.h"
#define hs_bulk_open own_bulk_open
#define hs_bulk_plain own_bulk_plain
#define hs_bulk_loss_at own_bulk_loss_at
#define hs_bulk_losses own_bulk_losses
#define hs_bulk_place own_bulk_place
#define hs_bulk_tail own_bulk_tail
#define hs_bulk_unit own_bulk_unit
#define hs_bulk_masses own_bulk_masses
#define hs_bulk_cut own_bulk_cut
#define hs_bulk_cell own_bulk_cell
#define hs_bulk_log_upper own_bulk_log_upper
#define hs_bulk_at own_bulk_at
#define hs_bulk_top_tilt own_bulk_top_tilt
#define hs_bulk_top_loss own_bulk_top_loss
#define hs_bulk_estimate own_bulk_estimate
#define hs_bulk_cell_estimate own_bulk_cell_estimate
#define hs_bulk_cell_at own_bulk_cell_at
#define hs_bulk_nodes own_bulk_nodes
#define hs_bulk_outside_upper own_bulk_outside_upper
#define hs_bulk_log_phase_upper own_bulk_log_phase_upper
#define hs_bulk_above_upper own_bulk_above_upper
#define hs_bulk_fall_upper own_bulk_fall_upper
#include "law/bulk.c"
#undef hs_bulk_open
#undef hs_bulk_plain
#undef hs_bulk_loss_at
#undef hs_bulk_losses
#undef hs_bulk_place
#undef hs_bulk_tail
#undef hs_bulk_unit
#undef hs_bulk_masses
#undef hs_bulk_cut
#undef hs_bulk_cell
#undef hs_bulk_log_upper
#undef hs_bulk_at
#undef hs_bulk_top_tilt
#undef hs_bulk_top_loss
#undef hs_bulk_estimate
#undef hs_bulk_cell_estimate
#undef hs_bulk_cell_at
#undef hs_bulk_nodes
#undef hs_bulk_outside_upper
#undef hs_bulk_log_phase_upper
#undef hs_bulk_above_upper
#undef hs_bulk_fall_upper
