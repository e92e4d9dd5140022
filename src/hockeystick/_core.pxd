# The C names that the gate may call; csrc/hs.h is the contract.

cdef extern from "hs.h" nogil:
    ctypedef struct hs_point:
        double log_scale, estimate, lower, upper
        double aliasing, truncation, inner, rounding
        long n_nodes
    int hs_status_last()
