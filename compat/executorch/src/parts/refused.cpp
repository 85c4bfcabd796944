// The source of targets that ExecuTorch has and that have no counterpart here: it is compiled when
// one of them is linked, and says what to use.
static_assert(false, RUSHLIGHT_REFUSED);
