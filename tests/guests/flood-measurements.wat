;; Measures one thing after the other.
(func $run (param $target i32) (result i32)
  (loop $more
    (call $measure 'words' (i32.const 0) '' (i32.const 1) (i64.const 4096) (i32.const 5))
    (br $more))
  unreachable)
