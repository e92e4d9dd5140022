/* own_contour.h - contour.c, read for its static functions: its public ones get names of their own. */
#define hs_contour_estimate own_contour_estimate
#define hs_contour_chernoff_upper own_contour_chernoff_upper
#define hs_contour_work own_contour_work
#define hs_contour_curve own_contour_curve
#define hs_contour_ask own_contour_ask
#define hs_line_freeze own_line_freeze
#define hs_line_point own_line_point
#define hs_line_visit own_line_visit
#define hs_line_answer own_line_answer
#define hs_depths own_depths
#include "line/contour.c"
