/* What the module map names: the C interface, where it is installed. */
#include <rushlight.h>
