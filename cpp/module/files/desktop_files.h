// The files of the operating system, for backends that keep files.
#pragma once

#include "rushlight/delegate/file_store.h"

namespace rushlight {

// May be used by several threads at once.
FileStore& desktop_files();

}  // namespace rushlight
