#pragma once

#include "operation.h"

namespace skein {

Completion refusal(const Command& command, Outcome outcome, const char* message);

/** Stores MPI's message for `code` in a response. Only the first failure of an operation is kept. */
void describeFailure(Completion& answer, const char* call, int code);

/** Compares a received message with the awaited message. A different tag or length is a mismatch. */
void checkArrival(Completion& answer, const Awaited& awaited, const MPI_Status& status);

/** Compares the agreement values of all ranks. */
void checkAgreement(Operation& operation);

size_t bytesUnderWay(const Command& command);

}  // namespace skein
