;; Takes all memory it can get, uses it, and is not content.
(func $run (param $target i32) (result i32)
  (local $at i32)
  (loop $more
    (local.set $at (i32.mul (memory.size) (i32.const 65536)))
    (if (i32.eq (memory.grow (i32.const 64)) (i32.const -1)) (then unreachable))
    (memory.fill (local.get $at) (i32.const 1) (i32.const 4194304))
    (br $more))
  unreachable)
