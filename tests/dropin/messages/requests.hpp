// This file completes the requests of random messages in every way that MPI has for it.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "message.hpp"

namespace random_messages {

// A Requests holds the requests of this rank in a random order, among them a null one.
class Requests {
 public:
  Requests(Random& random, std::vector<Message>& messages) {
    for (Message& m : messages) {
      if (m.sending != MPI_REQUEST_NULL) add(m.sending, &m, false);
      if (m.receiving != MPI_REQUEST_NULL) add(m.receiving, &m, true);
    }
    add(MPI_REQUEST_NULL, nullptr, false);
    for (std::size_t i = requests_.size(); i > 1; --i) {
      const std::size_t other = below(random, i);
      std::swap(requests_[i - 1], requests_[other]);
      std::swap(owners_[i - 1], owners_[other]);
    }
    statuses_.resize(requests_.size());
  }
  void complete(std::size_t how) {
    const int n = static_cast<int>(requests_.size());
    switch (how) {
      case 0:
      case 1:
        MPI_Waitall(n, requests_.data(), statuses_.data());
        return all_done();
      case 2:
        return one_by_one([&](std::size_t i) { MPI_Wait(&requests_[i], &statuses_[i]); });
      case 3:
        return one_by_one([&](std::size_t i) {
          for (int flag = 0; flag == 0;) MPI_Test(&requests_[i], &flag, &statuses_[i]);
        });
      case 4:
        for (int flag = 0; flag == 0;) MPI_Testall(n, requests_.data(), &flag, statuses_.data());
        return all_done();
      case 5:
        return any(
            [&](int* at, MPI_Status* status) { MPI_Waitany(n, requests_.data(), at, status); });
      case 6:
        return any([&](int* at, MPI_Status* status) {
          for (int flag = 0; flag == 0;) MPI_Testany(n, requests_.data(), at, &flag, status);
        });
      case 7:
        return some([&](int* number, int* at) {
          MPI_Waitsome(n, requests_.data(), number, at, statuses_.data());
        });
      case 8:
        return some([&](int* number, int* at) {
          MPI_Testsome(n, requests_.data(), number, at, statuses_.data());
        });
      default:
        return one_by_one([&](std::size_t i) {
          MPI_Status early;
          // MPICH 5.0.2 makes a persistent request inactive when it is asked for its status.
          if (requests_[i] != MPI_REQUEST_NULL && !is_persistent(owners_[i])) {
            for (int flag = 0; flag == 0;) MPI_Request_get_status(requests_[i], &flag, &early);
          }
          MPI_Wait(&requests_[i], &statuses_[i]);
        });
    }
  }

 private:
  struct Owner {
    Message* message;
    bool receives;
  };
  static bool is_persistent(const Owner& owner) {
    if (!owner.receives) return owner.message != nullptr && owner.message->send >= Send::persistent;
    return owner.message->receive >= Receive::persistent;
  }
  void add(MPI_Request request, Message* message, bool receives) {
    requests_.push_back(request);
    owners_.push_back({message, receives});
  }
  void done(std::size_t i, const MPI_Status& status) {
    const Owner owner = owners_[i];
    if (owner.message == nullptr) return;
    if (owner.receives) {
      received(*owner.message, status);
      if (owner.message->receive < Receive::persistent) return;
      check_inactive(*owner.message);
      if (!owner.message->again) MPI_Request_free(&requests_[i]);
      return;
    }
    int cancelled = -1;
    MPI_Test_cancelled(&status, &cancelled);
    expect(cancelled == 0, "a send is not cancelled");
    // The program's buffer is its own again.
    std::memset(owner.message->out, 0x11,
                span_of(owner.message->out_layout, owner.message->units) - 64);
    if (owner.message->send >= Send::persistent) {
      expect(requests_[i] != MPI_REQUEST_NULL, "a persistent send stays");
      if (!owner.message->again) MPI_Request_free(&requests_[i]);
    } else {
      expect(requests_[i] == MPI_REQUEST_NULL, "a completed request is null");
    }
  }
  void all_done() {
    for (std::size_t i = 0; i < requests_.size(); ++i) done(i, statuses_[i]);
  }
  template <class Each>
  void one_by_one(Each each) {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      each(i);
      done(i, statuses_[i]);
    }
  }
  template <class Any>
  void any(Any call) {
    for (;;) {
      int at = 0;
      MPI_Status status;
      call(&at, &status);
      if (at == MPI_UNDEFINED) return;
      done(static_cast<std::size_t>(at), status);
    }
  }
  template <class Some>
  void some(Some call) {
    std::vector<int> at(requests_.size());
    for (;;) {
      int number = 0;
      call(&number, at.data());
      if (number == MPI_UNDEFINED) return;
      for (int i = 0; i < number; ++i) {
        done(static_cast<std::size_t>(at[static_cast<std::size_t>(i)]),
             statuses_[static_cast<std::size_t>(i)]);
      }
    }
  }

  std::vector<MPI_Request> requests_;
  std::vector<Owner> owners_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace random_messages
