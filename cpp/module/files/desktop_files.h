// The files of the system that a program runs on, for backends that keep some.
#pragma once

#include "rushlight/delegate/file_store.h"

namespace rushlight {

// May be used from several threads at once.
FileStore& desktop_files();

}  // namespace rushlight
