;; Submits one finding after the other.
(func $run (param $target i32) (result i32)
  (loop $more
    (call $fail 'hostile.holds' '' 'acme.broken' (i32.const -1))
    (br $more))
  unreachable)
