// Declares memory for the results of ops, which is used again and again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef DECODER_MEMORY_H
#define DECODER_MEMORY_H

#include <kpkg/kpkg.hpp>

namespace decoder {

/// Returns a stream of a GPU whose calls take their memory from lists of blocks that went back before.
///
/// The order of the stream makes that safe: later work waits for earlier work. A recorded graph then has no
/// allocations, if the same calls ran before the recording. Blocks go back to the driver with the last copy of the
/// stream.
kpkg::Stream streamWithMemory(kpkg_device device);

} // namespace decoder
#endif
