#pragma once

#include "operation.h"

namespace skein {

Completion refusal(const Command& command, Outcome outcome, const char* message);

/** Stores MPI's message for `code` in an answer; only the first failure of an operation is kept. */
void describeFailure(Completion& answer, const char* call, int code);

/** Compares an arrived message with the awaited one: another tag or length is a mismatch. */
void checkArrival(Completion& answer, const Awaited& awaited, const MPI_Status& status);

/** Compares the agreements of all ranks. */
void checkAgreement(Operation& operation);

size_t bytesUnderWay(const Command& command);

}  // namespace skein
